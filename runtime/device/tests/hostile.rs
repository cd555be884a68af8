//! What the other side can do by writing anything anywhere: errors and wrong contents, no more.
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dma_engine_uapi::RingOffsets;
use proptest::prelude::*;
use stepccl_device::{
    Client, CompletionEntry, CompletionQueue, End, MappedRing, Ring, RingError, RingLayout,
    RingMemory, Service, SubmissionEntry, SubmissionQueue, Taken, Word,
};
use stepccl_memory::Segment;

fn ring(sq: u32, cq: u32) -> (Arc<MappedRing>, RingLayout) {
    let (layout, bytes) = RingLayout::of(sq, cq).unwrap();
    let segment = Segment::create("ring-test", bytes as usize).unwrap();
    (Arc::new(MappedRing::new(segment, layout).unwrap()), layout)
}

/// Small enough to repeat, good enough to look like anything.
struct Noise(u64);

impl Noise {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 ^ self.0 >> 29
    }
}

/// Write noise over the whole ring until told to stop; half of it into the first bytes, where the
/// indices are, and some of that plausible.
fn scribble(ring: &MappedRing, stop: &AtomicBool, seed: u64) -> u64 {
    let view = ring.view();
    let words = view.bytes() / 4;
    let mut noise = Noise(seed);
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let pick = noise.next() as usize;
        let index = if pick & 1 == 0 { pick % 192 } else { pick % words };
        let value = match noise.next() % 4 {
            0 => noise.next() as u32 % 16,
            1 => view.atomic_u32(index * 4).unwrap().load(Ordering::Relaxed).wrapping_add(1),
            _ => noise.next() as u32,
        };
        view.atomic_u32(index * 4).unwrap().store(value, Ordering::Relaxed);
        written += 1;
    }
    written
}

/// Counts of what a side met.
#[derive(Default, Debug)]
struct Met {
    worked: u64,
    refused: u64,
}

impl Met {
    fn note<T>(&mut self, result: Result<T, RingError>) -> Option<T> {
        match result {
            Ok(value) => {
                self.worked += 1;
                Some(value)
            }
            Err(
                RingError::BadIndex { .. }
                | RingError::Failed
                | RingError::UnexpectedCompletion { .. }
                | RingError::NothingInFlight { .. },
            ) => {
                self.refused += 1;
                None
            }
            Err(other) => panic!("an index left its queue: {other}"),
        }
    }
}

const NAP: Duration = Duration::from_micros(50);

fn drive_service(mut service: Service<End>, stop: &AtomicBool) -> Met {
    let mut met = Met::default();
    while !stop.load(Ordering::Relaxed) {
        if let Some(Taken::Entry(entry)) = met.note(service.take()) {
            // Only the copy is looked at, so one answer is the answer.
            assert_eq!(entry.check(0), entry.check(0));
            met.note(service.complete(&CompletionEntry::moved(entry.user_data, 1)));
        }
        met.note(service.notify());
        met.note(service.wait(NAP));
    }
    met
}

fn drive_client(mut client: Client<End>, stop: &AtomicBool) -> Met {
    let mut met = Met::default();
    let entry = SubmissionEntry::default();
    while !stop.load(Ordering::Relaxed) {
        met.note(client.push(&entry));
        met.note(client.publish());
        met.note(client.pop());
        met.note(client.wait(NAP));
        assert!(client.outstanding() <= 16);
    }
    met
}

/// Two seconds of noise over the memory while both sides work on it. A side that fails is set up
/// again by the loop, as its user would do it.
#[test]
fn scribbling_over_everything_gives_errors_only() {
    let end = Instant::now() + Duration::from_secs(2);
    let mut totals = [Met::default(), Met::default()];
    let mut seed = 1;
    while Instant::now() < end {
        let (client, service) = Ring::in_process(8).unwrap();
        let (stop, quiet) = (&AtomicBool::new(false), &AtomicBool::new(false));
        // Another mapping of the same memory, as another process would have it.
        let other = service.memory().mapped().try_clone().unwrap();
        seed += 2;
        let mets = thread::scope(|scope| {
            let noise = scope.spawn(move || scribble(&other, quiet, seed));
            let client = scope.spawn(move || drive_client(client, stop));
            let service = scope.spawn(move || drive_service(service, stop));
            thread::sleep(Duration::from_millis(25));
            stop.store(true, Ordering::Relaxed);
            let mets = [client.join().unwrap(), service.join().unwrap()];
            quiet.store(true, Ordering::Relaxed);
            assert!(noise.join().unwrap() > 100, "the scribbler did not run");
            mets
        });
        for (total, met) in totals.iter_mut().zip(mets) {
            total.worked += met.worked;
            total.refused += met.refused;
        }
    }
    for met in totals {
        assert!(met.worked > 100 && met.refused > 0, "nothing was tried: {met:?}");
    }
}

fn words() -> impl Strategy<Value = [u32; 7]> {
    let near = prop_oneof![any::<u32>(), 0_u32..20, (0_u32..20).prop_map(|back| !back)];
    prop::array::uniform7(near)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any tail of a client is either a distance that fits or fails the ring for good.
    #[test]
    fn a_service_takes_what_fits(start: u32, tail: u32, near in 0_u32..12, wild: bool) {
        let tail = if wild { tail } else { start.wrapping_add(near) };
        let (memory, layout) = ring(8, 16);
        let mut service = Service::new(memory.clone(), &layout, start).unwrap();
        memory.store_release(Word::SqTail, tail).unwrap();
        let count = tail.wrapping_sub(start);
        if count > 8 {
            let refused = service.take();
            let expected = matches!(
                refused,
                Err(RingError::BadIndex { word: Word::SqTail, found, .. }) if found == tail
            );
            prop_assert!(expected, "{:?}", refused);
            memory.store_release(Word::SqTail, start).unwrap();
            prop_assert_eq!(service.take(), Err(RingError::Failed), "a broken ring stays broken");
            prop_assert_eq!(memory.load_acquire(Word::SqFlags).unwrap(), 1 << 2);
        } else {
            for _ in 0..count {
                prop_assert!(matches!(service.take(), Ok(Taken::Entry(_))));
            }
            prop_assert_eq!(service.take(), Ok(Taken::Empty));
        }
    }

    /// A head of the client that goes back or past the tail never frees a slot.
    #[test]
    fn a_service_believes_no_head_that_cannot_be(start: u32, head: u32, near in 0_u32..6, wild: bool) {
        let head = if wild { head } else { start.wrapping_add(near) };
        let (memory, layout) = ring(4, 4);
        let mut service = Service::new(memory.clone(), &layout, start).unwrap();
        memory.store_release(Word::SqTail, start.wrapping_add(4)).unwrap();
        for _ in 0..4 {
            prop_assert!(matches!(service.take(), Ok(Taken::Entry(_))));
            service.complete(&CompletionEntry::default()).unwrap();
        }
        memory.store_release(Word::SqTail, start.wrapping_add(8)).unwrap();
        memory.store_release(Word::CqHead, head).unwrap();
        let freed = head.wrapping_sub(start);
        match service.take() {
            Ok(Taken::Entry(_)) => prop_assert!((1..=4).contains(&freed)),
            Ok(Taken::NoRoom) => prop_assert_eq!(freed, 0),
            Err(RingError::BadIndex { word: Word::CqHead, .. }) => prop_assert!(freed > 4),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// Any indices of a service: the client's queues refuse or stay within their slots.
    #[test]
    fn a_client_believes_no_index_that_cannot_be(start: u32, words in words(), entry: [u64; 8]) {
        let (memory, layout) = ring(4, 8);
        let mut submissions = SubmissionQueue::new(memory.clone(), 4, start).unwrap();
        let mut completions = CompletionQueue::new(memory.clone(), 8, start).unwrap();
        for (word, value) in Word::ALL.into_iter().zip(words) {
            memory.store_release(word, value).unwrap();
        }
        memory.write_completion(start & 7, [entry[0], entry[1]]).unwrap();
        let ready = words[Word::CqTail as usize].wrapping_sub(start);
        match completions.pop() {
            Ok(Some(found)) => {
                prop_assert!((1..=8).contains(&ready));
                prop_assert_eq!(found.to_words(), [entry[0], entry[1]]);
            }
            Ok(None) => prop_assert_eq!(ready, 0),
            Err(RingError::Failed) => {
                prop_assert!(ready == 0 && words[Word::SqFlags as usize] & 4 != 0);
            }
            Err(error) => prop_assert!(ready > 8, "{}", error),
        }
        let entry = SubmissionEntry::from_words(entry);
        for _ in 0..4 {
            prop_assert!(submissions.push(&entry).unwrap());
        }
        submissions.publish().unwrap();
        let freed = words[Word::SqHead as usize].wrapping_sub(start);
        match submissions.push(&entry) {
            Ok(queued) => prop_assert_eq!(queued, (1..=4).contains(&freed)),
            Err(error) => prop_assert!(freed > 4, "{}", error),
        }
        prop_assert_eq!(layout.sq_entries(), 4);
    }

    /// A layout is accepted only if every place lies in the mapping, aligned and apart.
    #[test]
    fn set_up_cannot_lead_outside(
        offsets in prop::array::uniform9(prop_oneof![0_u32..40, Just(!63_u32), any::<u32>()]),
        shift in prop_oneof![Just(6_u32), Just(0)],
        limit in 0_u64..8192,
    ) {
        let at = offsets.map(|offset| offset.wrapping_shl(shift));
        let offsets = RingOffsets {
            sq_head: at[0], sq_tail: at[1], sq_flags: at[2], sq_entries: at[3], cq_head: at[4],
            cq_tail: at[5], cq_flags: at[6], cq_stalls: at[7], cq_entries: at[8],
            ..RingOffsets::default()
        };
        if RingLayout::new(offsets, 2, 4, limit).is_ok() {
            let mut covered = vec![0_u8; limit as usize];
            let words = [0, 1, 2, 4, 5, 6, 7].map(|index| (at[index], 4));
            for (offset, bytes) in words.into_iter().chain([(at[3], 128), (at[8], 64)]) {
                for byte in &mut covered[offset as usize..][..bytes] {
                    *byte += 1;
                }
            }
            prop_assert!(covered.iter().all(|count| *count <= 1));
        }
    }
}

#[test]
fn each_bad_offset_is_named() {
    let (good, bytes) = RingOffsets::lay_out(4, 8).unwrap();
    let check = |offsets, bytes: u32| RingLayout::new(offsets, 4, 8, u64::from(bytes));
    assert!(check(good, bytes).is_ok());
    let refused = check(good, bytes - 1).unwrap_err();
    assert!(
        matches!(refused, RingError::OffsetOutOfBounds { what: "cq_entries", .. }),
        "{refused}"
    );
    let crooked = RingOffsets { cq_tail: good.cq_tail + 2, ..good };
    let refused = check(crooked, bytes).unwrap_err();
    assert!(matches!(refused, RingError::OffsetMisaligned { what: "cq_tail", .. }), "{refused}");
    let crooked = RingOffsets { sq_flags: good.sq_entries + 64, ..good };
    let refused = check(crooked, bytes).unwrap_err();
    assert!(matches!(refused, RingError::OffsetsOverlap { .. }), "{refused}");
    for entries in [0, 3, u32::MAX] {
        let refused = RingLayout::new(good, entries, 8, u64::from(bytes)).unwrap_err();
        assert!(matches!(refused, RingError::BadEntries { queue: "submission", .. }), "{refused}");
    }
}

#[test]
fn a_segment_shorter_than_its_layout_is_refused() {
    let (layout, bytes) = RingLayout::of(4, 8).unwrap();
    let short = Segment::create("ring-test", bytes as usize - 1).unwrap();
    assert!(matches!(MappedRing::new(short, layout), Err(RingError::Memory(_))));
}

#[test]
fn a_completion_for_nothing_is_an_error() {
    let (mut client, service) = Ring::in_process(4).unwrap();
    let memory = service.memory().mapped();
    memory.write_completion(0, [0xfeed, 0]).unwrap();
    memory.store_release(Word::CqTail, 1).unwrap();
    assert_eq!(client.pop(), Err(RingError::UnexpectedCompletion { user_data: 0xfeed }));
}
