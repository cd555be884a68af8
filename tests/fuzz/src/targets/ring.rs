//! A ring whose memory anybody writes: calls fail, or give entries of wrong content, and no more.
//! As long as nobody does, entries and completions come as they went.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stepccl_device::{
    Client, CompletionEntry, End, Push, Ring, RingError, Service, SubmissionEntry, Taken,
};

use super::input::Input;

/// Both sides, and what must be in the queues while nobody scribbled.
struct Sides {
    client: Client<End>,
    service: Service<End>,
    pushed: VecDeque<u64>,
    completed: VecDeque<u64>,
    taken: Vec<u64>,
    honest: bool,
    next: u64,
}

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let entries = 1 << input.below(5);
    let Ok((client, service)) = Ring::in_process(entries) else { return };
    let mut sides = Sides {
        client,
        service,
        pushed: VecDeque::new(),
        completed: VecDeque::new(),
        taken: Vec::new(),
        honest: true,
        next: 0,
    };
    while !input.is_empty() {
        sides.act(&mut input);
        assert!(sides.client.outstanding() <= 2 * entries);
        assert!(sides.service.in_flight() <= 2 * entries);
    }
}

impl Sides {
    fn act(&mut self, input: &mut Input<'_>) {
        match input.below(8) {
            0 => self.push(),
            1 => {
                let published = self.client.publish();
                self.allowed(published);
            }
            2 => self.take(),
            3 => self.complete(),
            4 => self.pop(),
            5 => {
                let waited = self.client.wait(Duration::ZERO);
                self.allowed(waited);
                let waited = self.service.wait(Duration::ZERO);
                self.allowed(waited);
            }
            6 => {
                self.allowed(self.service.notify());
            }
            _ => self.scribble(input),
        }
    }

    /// A result whose error is one that a hostile side may cause.
    #[track_caller]
    fn allowed<T>(&self, result: Result<T, RingError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(
                RingError::BadIndex { .. }
                | RingError::Failed
                | RingError::UnexpectedCompletion { .. }
                | RingError::NothingInFlight { .. },
            ) if !self.honest => None,
            Err(other) => panic!("honest: {}: {other}", self.honest),
        }
    }

    fn push(&mut self) {
        let entry = SubmissionEntry { user_data: self.next, ..SubmissionEntry::default() };
        let pushed = self.client.push(&entry);
        if self.allowed(pushed) == Some(Push::Queued) {
            self.pushed.push_back(self.next);
            self.next += 1;
        }
    }

    fn take(&mut self) {
        let taken = self.service.take();
        if let Some(Taken::Entry(entry)) = self.allowed(taken) {
            // Only the copy is looked at, so one answer is the answer.
            assert_eq!(entry.check(0), entry.check(0));
            if self.honest {
                assert_eq!(self.pushed.pop_front(), Some(entry.user_data));
            }
            self.taken.push(entry.user_data);
        }
    }

    fn complete(&mut self) {
        let Some(user_data) = self.taken.pop() else { return };
        let done = self.service.complete(&CompletionEntry::moved(user_data, 1));
        if self.allowed(done).is_some() {
            self.completed.push_back(user_data);
        }
    }

    fn pop(&mut self) {
        let popped = self.client.pop();
        let popped = self.allowed(popped).flatten();
        if self.honest {
            assert_eq!(popped.map(|c| c.user_data), self.completed.pop_front());
        }
    }

    /// Write a word as the other side could.
    fn scribble(&mut self, input: &mut Input<'_>) {
        self.honest = false;
        let view = self.client.memory().mapped().view();
        let at = usize::from(input.u16()) * 4 % (view.bytes() & !3);
        let value = if input.u8() & 1 == 0 { u32::from(input.u8()) } else { input.u32() };
        if let Ok(word) = view.atomic_u32(at) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let round = [0, 0, 1, 2, 2, 3, 3, 6, 5, 4, 4];
    let calm = [&[2][..], &round, &round, &round].concat();
    let wild =
        [&[1][..], &round, &[7, 16, 0, 0, 9], &round, &[7, 64, 0, 1, 255, 255, 255, 255], &round];
    vec![calm, wild.concat()]
}
