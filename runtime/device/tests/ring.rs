//! Both sides against each other: contents, bounds, waiting and leaving.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use stepccl_device::{
    Client, CompletionEntry, Descriptor, End, Push, Ring, RingError, RingMemory, Service,
    SubmissionEntry, Taken, Waited, Word,
};

const LIMIT: Duration = Duration::from_secs(20);

fn entry(number: u64) -> SubmissionEntry {
    SubmissionEntry {
        desc: Descriptor { src_addr: !number, dst_addr: number << 7, ..Descriptor::default() },
        user_data: number,
        ..SubmissionEntry::default()
    }
}

fn take(service: &mut Service<End>) -> Option<SubmissionEntry> {
    match service.take().unwrap() {
        Taken::Entry(entry) => Some(entry),
        Taken::Empty => None,
        Taken::NoRoom => panic!("the client keeps to the completion slots"),
    }
}

/// Whether each side can go to a thread of its own.
const fn sendable<T: Send>(_: &T) {}

#[test]
fn two_threads_move_a_million_entries_whole() {
    let (mut client, mut service) = Ring::in_process(64).unwrap();
    sendable(&client);
    sendable(&service);
    const COUNT: u64 = if cfg!(miri) { 100 } else { 1_000_000 };
    let worker = thread::spawn(move || {
        let mut next = 0;
        while next < COUNT {
            while let Some(found) = take(&mut service) {
                assert_eq!(found, entry(next));
                service.complete(&CompletionEntry::moved(next, next as u32)).unwrap();
                next += 1;
            }
            service.notify().unwrap();
            if next < COUNT && service.wait(LIMIT).unwrap() == Waited::Gone {
                panic!("the client left after {next} entries");
            }
        }
    });
    let (mut pushed, mut popped) = (0, 0);
    while popped < COUNT {
        while pushed < COUNT && client.push(&entry(pushed)).unwrap() == Push::Queued {
            pushed += 1;
        }
        client.publish().unwrap();
        while let Some(found) = client.pop().unwrap() {
            assert_eq!(found, CompletionEntry::moved(popped, popped as u32));
            popped += 1;
        }
        if popped < COUNT && client.outstanding() > 0 {
            assert_ne!(client.wait(LIMIT).unwrap(), Waited::Gone);
        }
    }
    worker.join().unwrap();
    assert_eq!((client.outstanding(), client.stalls().unwrap()), (0, 0));
}

/// One entry at a time, so that both sides go to sleep again and again.
#[test]
fn a_sleeping_side_is_woken() {
    let (mut client, mut service) = Ring::in_process(1).unwrap();
    const COUNT: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let start = Instant::now();
    let worker = thread::spawn(move || {
        let mut done = 0;
        while done < COUNT {
            match take(&mut service) {
                Some(found) => {
                    done += 1;
                    service.complete(&CompletionEntry::moved(found.user_data, 0)).unwrap();
                    service.notify().unwrap();
                }
                None => drop(service.wait(LIMIT).unwrap()),
            }
        }
    });
    for number in 0..COUNT {
        assert_eq!(client.push(&entry(number)).unwrap(), Push::Queued);
        client.publish().unwrap();
        while client.pop().unwrap().is_none() {
            client.wait(LIMIT).unwrap();
        }
    }
    worker.join().unwrap();
    assert!(start.elapsed() < LIMIT, "a wake-up was lost and its limit ran out");
}

#[test]
fn a_wait_ends_with_its_limit() {
    let (mut client, mut service) = Ring::in_process(4).unwrap();
    let short = Duration::from_millis(30);
    let start = Instant::now();
    assert_eq!(client.wait(short).unwrap(), Waited::Idle);
    assert_eq!(service.wait(short).unwrap(), Waited::Idle);
    assert!(start.elapsed() >= 2 * short);
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn a_side_that_leaves_wakes_the_other_and_its_last_words_are_read() {
    let (mut client, mut service) = Ring::in_process(4).unwrap();
    let sleeper = thread::spawn(move || {
        while service.wait(LIMIT).unwrap() != Waited::Ready {}
        assert_eq!(take(&mut service), Some(entry(1)));
        let gone = service.wait(LIMIT).unwrap();
        (gone, service)
    });
    assert_eq!(client.push(&entry(1)).unwrap(), Push::Queued);
    client.publish().unwrap();
    thread::sleep(Duration::from_millis(20));
    let start = Instant::now();
    drop(client);
    let (gone, _service) = sleeper.join().unwrap();
    assert_eq!(gone, Waited::Gone);
    assert!(start.elapsed() < LIMIT / 2);

    let (mut client, mut service) = Ring::in_process(4).unwrap();
    assert_eq!(client.push(&entry(2)).unwrap(), Push::Queued);
    client.publish().unwrap();
    assert!(take(&mut service).is_some());
    service.complete(&CompletionEntry::failed(2, 125)).unwrap();
    drop(service);
    assert_eq!(client.wait(LIMIT).unwrap(), Waited::Ready);
    assert_eq!(client.pop().unwrap().unwrap().outcome(), Err(125));
    assert_eq!(client.wait(LIMIT).unwrap(), Waited::Gone);
}

#[test]
fn a_full_ring_says_so_and_loses_nothing() {
    let (mut client, mut service) = Ring::in_process(4).unwrap();
    for number in 0..4 {
        assert_eq!(client.push(&entry(number)).unwrap(), Push::Queued);
    }
    assert_eq!(client.push(&entry(4)).unwrap(), Push::Full, "four submission slots");
    client.publish().unwrap();
    assert_eq!(take(&mut service), Some(entry(0)));
    assert_eq!(service.batch_left(), 3);
    assert_eq!(client.push(&entry(4)).unwrap(), Push::Queued, "a slot was freed");
    client.publish().unwrap();
    while take(&mut service).is_some() {}
    for number in 5..8 {
        assert_eq!(client.push(&entry(number)).unwrap(), Push::Queued);
    }
    client.publish().unwrap();
    while take(&mut service).is_some() {}
    assert_eq!(client.push(&entry(8)).unwrap(), Push::Full, "eight completion slots are promised");
    for number in 0..8 {
        service.complete(&CompletionEntry::moved(number, 1)).unwrap();
    }
    let late = CompletionEntry::moved(8, 1);
    assert_eq!(service.complete(&late), Err(RingError::NothingInFlight { user_data: 8 }));
    for number in 0..8 {
        assert_eq!(client.pop().unwrap().unwrap().user_data, number);
    }
    assert_eq!(client.pop().unwrap(), None);
}

/// A client without this crate's manners: the service holds entries back, says so, and goes on.
#[test]
fn no_completion_slot_is_visible_and_loses_nothing() {
    let (client, mut service) = Ring::in_process(2).unwrap();
    let memory = client.memory().mapped();
    let mut tail = 0;
    for _ in 0..2 {
        tail += 2;
        memory.store_release(Word::SqTail, tail).unwrap();
        for _ in 0..2 {
            assert!(take(&mut service).is_some());
            service.complete(&CompletionEntry::default()).unwrap();
        }
    }
    memory.store_release(Word::SqTail, tail + 1).unwrap();
    for _ in 0..3 {
        assert_eq!(service.take().unwrap(), Taken::NoRoom);
    }
    assert_eq!(client.stalls().unwrap(), 1, "one stall, however often it is looked at");
    assert_eq!(memory.load_acquire(Word::SqFlags).unwrap(), 1 << 1);
    memory.store_release(Word::CqHead, 1).unwrap();
    assert!(take(&mut service).is_some());
    assert_eq!(memory.load_acquire(Word::SqFlags).unwrap(), 0);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for entries in [0, 3, 1 << 16, 1 << 31, u32::MAX] {
        assert!(
            matches!(Ring::in_process(entries), Err(RingError::BadEntries { .. })),
            "{entries}"
        );
    }
    assert!(Ring::in_process(1 << 15).is_ok());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Publish,
    Take,
    Complete,
    Pop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Push),
        2 => Just(Step::Publish),
        3 => Just(Step::Take),
        3 => Just(Step::Complete),
        3 => Just(Step::Pop),
    ];
    prop::collection::vec(step, 0..400)
}

/// What a ring should hold, without any index.
#[derive(Default)]
struct Model {
    pushed: VecDeque<u64>,
    published: VecDeque<u64>,
    taken: VecDeque<u64>,
    completed: VecDeque<u64>,
    next: u64,
}

impl Model {
    fn outstanding(&self) -> usize {
        self.pushed.len() + self.published.len() + self.taken.len() + self.completed.len()
    }

    fn step(&mut self, step: Step, entries: usize, ring: &mut (Client<End>, Service<End>)) {
        let (client, service) = ring;
        match step {
            Step::Push => {
                let free = self.pushed.len() + self.published.len() < entries
                    && self.outstanding() < 2 * entries;
                let push = client.push(&entry(self.next)).unwrap();
                assert_eq!(push == Push::Queued, free);
                if free {
                    self.pushed.push_back(self.next);
                    self.next += 1;
                }
            }
            Step::Publish => {
                assert_eq!(client.publish().unwrap() as usize, self.pushed.len());
                self.published.append(&mut self.pushed);
            }
            Step::Take => {
                let expected = self.published.pop_front();
                assert_eq!(take(service), expected.map(entry));
                self.taken.extend(expected);
            }
            Step::Complete => {
                // Out of order, as channels do.
                let Some(data) = self.taken.pop_back() else { return };
                service.complete(&CompletionEntry::moved(data, 3)).unwrap();
                self.completed.push_back(data);
            }
            Step::Pop => {
                let found = client.pop().unwrap().map(|completion| completion.user_data);
                assert_eq!(found, self.completed.pop_front());
            }
        }
        assert_eq!(client.outstanding() as usize, self.outstanding());
        assert_eq!(service.in_flight() as usize, self.taken.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 96 }))]

    #[test]
    fn a_ring_is_two_queues(steps in steps(), log in 0_u32..4) {
        let mut ring = Ring::in_process(1 << log).unwrap();
        let mut model = Model::default();
        for step in steps {
            model.step(step, 1 << log, &mut ring);
        }
    }
}
