//! What every service of a ring must do, whoever it is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dma_engine_uapi::descriptor::{flags as desc_flags, opcode};
use dma_engine_uapi::submission::flags;
use dma_engine_uapi::{address, status};
use stepccl_device::{
    Client, CompletionEntry, Descriptor, Doorbell, Push, SubmissionEntry, Waited,
};

use crate::noise::Noise;

/// How long a completion may take on a machine that does other things too.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Where rings come from.
pub trait Target {
    /// Memory of its rings.
    type Memory: Doorbell;

    /// A fresh ring with `entries` submission slots.
    fn client(&self, entries: u32) -> Client<Self::Memory>;
}

/// One test.
pub type Case<T> = (&'static str, fn(&T));

/// All of them.
#[must_use]
pub fn cases<T: Target>() -> Vec<Case<T>> {
    vec![
        ("every no-op completes once", every_no_op_completes_once),
        ("a small ring goes round often", a_small_ring_goes_round_often),
        ("broken entries complete with their errno", broken_entries),
        ("an unknown region is not there", an_unknown_region),
        ("another node cannot be reached", another_node),
        ("a chain stops at its first failure", a_chain_stops),
        ("a chain ends with its batch", a_chain_ends_with_its_batch),
        ("fences and drains complete", fences_and_drains),
        ("a wait for nothing ends with its limit", a_wait_ends),
    ]
}

/// A no-op.
#[must_use]
pub fn no_op(user_data: u64) -> SubmissionEntry {
    let desc = Descriptor { opcode: opcode::NOP, ..Descriptor::default() };
    SubmissionEntry { desc, user_data, ..SubmissionEntry::default() }
}

/// Submit entries as one batch and read all their completions, by user data.
///
/// # Panics
///
/// Where one does not come within [`LIMIT`], comes twice, or is for something else.
pub fn run<M: Doorbell>(
    client: &mut Client<M>,
    entries: &[SubmissionEntry],
) -> BTreeMap<u64, CompletionEntry> {
    for entry in entries {
        assert_eq!(client.push(entry).unwrap(), Push::Queued);
    }
    assert_eq!(client.publish().unwrap() as usize, entries.len());
    let mut found = BTreeMap::new();
    while found.len() < entries.len() {
        let completion = next(client);
        let data = completion.user_data;
        assert!(entries.iter().any(|entry| entry.user_data == data), "never submitted: {data}");
        assert_eq!(found.insert(data, completion), None, "completed twice: {data}");
    }
    found
}

/// The next completion.
///
/// # Panics
///
/// Where it does not come within [`LIMIT`].
pub fn next<M: Doorbell>(client: &mut Client<M>) -> CompletionEntry {
    let start = Instant::now();
    loop {
        if let Some(completion) = client.pop().unwrap() {
            return completion;
        }
        assert!(start.elapsed() < LIMIT, "no completion within {LIMIT:?}");
        assert_ne!(client.wait(Duration::from_secs(1)).unwrap(), Waited::Gone);
    }
}

fn every_no_op_completes_once(target: &impl Target) {
    let mut noise = Noise::fresh();
    let mut client = target.client(64);
    for _ in 0..200 {
        let batch: Vec<_> = (0..=noise.below(64)).map(|_| no_op(noise.next())).collect();
        let batch = &batch[..batch.len().min(64)];
        for (data, completion) in run(&mut client, batch) {
            assert_eq!(completion, CompletionEntry::moved(data, 0));
        }
    }
    assert_eq!(client.stalls().unwrap(), 0);
}

fn a_small_ring_goes_round_often(target: &impl Target) {
    let mut client = target.client(1);
    for number in 0..5_000 {
        let found = run(&mut client, &[no_op(number)]);
        assert_eq!(found[&number], CompletionEntry::moved(number, 0));
    }
}

/// An entry that breaks one rule of the header, and the errno that the header names for it.
fn broken() -> Vec<(&'static str, SubmissionEntry, i32)> {
    let copy = Descriptor {
        opcode: opcode::READ,
        length: 64,
        src_addr: address::address(1 << 14, 0).unwrap(),
        dst_addr: address::address(1 << 14, 4096).unwrap(),
        ..Descriptor::default()
    };
    let of = |desc| SubmissionEntry { desc, ..SubmissionEntry::default() };
    let nop = no_op(0);
    vec![
        ("opcode 0", of(Descriptor::default()), 22),
        ("unknown opcode", of(Descriptor { opcode: 0x77, ..copy }), 95),
        ("length 0", of(Descriptor { length: 0, ..copy }), 22),
        ("unknown flag of the descriptor", of(Descriptor { flags: 0x80, ..copy }), 95),
        ("both ways", of(Descriptor { flags: desc_flags::ALL, ..copy }), 22),
        ("reserved byte", of(Descriptor { reserved: [0, 0, 0, 1, 0, 0], ..copy }), 22),
        ("overlap", of(Descriptor { dst_addr: copy.src_addr + 63, ..copy }), 22),
        ("read to elsewhere", of(Descriptor { dst_node: 9, ..copy }), 22),
        ("fill elsewhere", of(Descriptor { opcode: opcode::FILL, dst_node: 9, ..copy }), 22),
        (
            "no-op with a length",
            SubmissionEntry { desc: Descriptor { length: 1, ..nop.desc }, ..nop },
            22,
        ),
        ("unknown flag", SubmissionEntry { flags: 1 << 31, ..nop }, 95),
        ("both signals", SubmissionEntry { flags: flags::SIGNAL, ..nop }, 22),
        ("signal value without a signal", SubmissionEntry { signal_value: 1, ..nop }, 22),
        (
            "signal at an odd address",
            SubmissionEntry { flags: flags::SIGNAL_ADD, signal_addr: 4, ..nop },
            22,
        ),
        ("reserved word", SubmissionEntry { reserved: 1, ..nop }, 22),
    ]
}

fn broken_entries(target: &impl Target) {
    let mut client = target.client(16);
    for (number, (what, entry, errno)) in broken().into_iter().enumerate() {
        let data = number as u64;
        let found = run(&mut client, &[SubmissionEntry { user_data: data, ..entry }]);
        assert_eq!(found[&data], CompletionEntry::failed(data, errno), "{what}");
    }
}

fn an_unknown_region(target: &impl Target) {
    let mut client = target.client(4);
    for code in [opcode::READ, opcode::WRITE, opcode::FILL] {
        let desc = Descriptor {
            opcode: code,
            length: 1,
            src_addr: address::address(77 << 14, 0).unwrap(),
            dst_addr: address::address(78 << 14 | 5, 0).unwrap(),
            ..Descriptor::default()
        };
        let found = run(&mut client, &[SubmissionEntry { desc, ..SubmissionEntry::default() }]);
        assert_eq!(found[&0].outcome(), Err(status::ENOENT), "opcode {code}");
    }
}

fn another_node(target: &impl Target) {
    let mut client = target.client(4);
    let desc =
        Descriptor { opcode: opcode::WRITE, length: 1, dst_node: 5, ..Descriptor::default() };
    let found = run(&mut client, &[SubmissionEntry { desc, ..SubmissionEntry::default() }]);
    assert_eq!(found[&0].outcome(), Err(status::EHOSTUNREACH));
}

fn linked(entry: SubmissionEntry) -> SubmissionEntry {
    SubmissionEntry { flags: entry.flags | flags::LINK, ..entry }
}

fn bad(user_data: u64) -> SubmissionEntry {
    SubmissionEntry { reserved: 1, ..no_op(user_data) }
}

fn a_chain_stops(target: &impl Target) {
    let mut client = target.client(16);
    let chains = [
        linked(no_op(0)),
        linked(bad(1)),
        linked(no_op(2)),
        no_op(3),
        // The next chain, and an entry alone, have nothing to do with it.
        linked(no_op(4)),
        no_op(5),
        bad(6),
        no_op(7),
    ];
    let found = run(&mut client, &chains);
    let errors: Vec<_> = found.values().map(|done| done.outcome().err()).collect();
    let (inval, cancelled) = (Some(22), Some(status::ECANCELED));
    assert_eq!(errors, [None, inval, cancelled, cancelled, None, None, inval, None]);
}

fn a_chain_ends_with_its_batch(target: &impl Target) {
    let mut client = target.client(16);
    assert_eq!(run(&mut client, &[linked(bad(0))])[&0].outcome(), Err(22));
    assert_eq!(run(&mut client, &[no_op(1)])[&1].outcome(), Ok(0));
}

fn fences_and_drains(target: &impl Target) {
    let mut client = target.client(16);
    let fence = Descriptor { opcode: opcode::FENCE, ..Descriptor::default() };
    let batch = [
        no_op(0),
        SubmissionEntry { desc: fence, ..no_op(1) },
        SubmissionEntry { flags: flags::DRAIN, ..no_op(2) },
        no_op(3),
    ];
    for _ in 0..100 {
        for (data, completion) in run(&mut client, &batch) {
            assert_eq!(completion, CompletionEntry::moved(data, 0));
        }
    }
}

fn a_wait_ends(target: &impl Target) {
    let mut client = target.client(4);
    let start = Instant::now();
    assert_eq!(client.wait(Duration::from_millis(30)).unwrap(), Waited::Idle);
    assert!(start.elapsed() >= Duration::from_millis(30));
}
