//! A host engine whose peer writes anything into the segments that both map: flags, posts, state,
//! doorbell. Every call ends, and nothing but what the peer may own is changed by it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use stepccl_engine::{Board, BoardShape, Combination, Engine, Look, Part, PartMut};
use stepccl_engine_host::{HostConfig, HostEngine, PeerLink};
use stepccl_memory::{MemoryError, Segment};
use stepccl_plan::{DType, ReduceOp, Targets};

use super::input::Input;

const POST_BYTES: usize = 200;

fn config(rank: u32) -> HostConfig {
    HostConfig {
        flags: 8,
        board: BoardShape { posts: 4, bytes: POST_BYTES },
        pair_board: BoardShape { posts: 2, bytes: 40 },
        staging_bytes: 4096,
        ..HostConfig::new(rank, 2)
    }
}

/// Another mapping of a segment, as a peer has it.
fn again(segment: &Segment) -> Result<Segment, MemoryError> {
    segment.try_clone()
}

fn scribble(segment: &Segment, input: &mut Input<'_>) {
    let view = segment.view();
    // Half of it into the first page and the flags, where the words are that mean something.
    let pick = input.u16();
    let words = if pick & 1 == 0 { 640 } else { view.bytes() / 8 };
    let at = usize::from(pick >> 1) % words;
    let value = match input.below(3) {
        0 => u64::from(input.u8()),
        1 => u64::from(input.u32()) << 32 | u64::from(input.u8()),
        _ => input.u64(),
    };
    if let Ok(word) = view.atomic_u64(at * 8) {
        word.store(value, Ordering::Relaxed);
    }
}

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let made = [0, 1].map(|rank| HostEngine::create_segment(&config(rank)));
    let [Ok(own), Ok(peer)] = made else { return };
    let (Ok(own_again), Ok(peer_again)) = (again(&own), again(&peer)) else { return };
    // Some of it before the engine looks at the header: it starts, or says what differs.
    for _ in 0..input.below(4) {
        scribble(&peer_again, &mut input);
    }
    let link = PeerLink { rank: 1, pid: 1, segment: peer, socket: None };
    let Ok(mut engine) = HostEngine::new(config(0), own, vec![link]) else { return };
    while !input.is_empty() {
        act(&mut engine, &mut input);
        scribble(if input.u8() & 3 == 0 { &own_again } else { &peer_again }, &mut input);
    }
}

fn act(engine: &mut HostEngine, input: &mut Input<'_>) {
    let number = u64::from(input.u8());
    let board =
        if input.u8() & 1 == 0 { Board::Collective } else { Board::Pair(input.u8().into()) };
    match input.below(7) {
        0 => drop(engine.flag(1, input.u8().into())),
        1 => drop(engine.signal(Targets::All, input.u8().into(), number)),
        2 => {
            if let Ok(Look::Here(words)) = engine.look(1, board, number) {
                let _ = stepccl::fuzz::text_of(words);
            }
        }
        3 => fetch(engine, board, number, input),
        4 => combine(engine, number, input),
        5 => {
            let bytes = [7; 64];
            let parts = [Part { base: bytes.as_ptr(), bytes: input.below(65) }];
            // SAFETY:
            // - The part lies in `bytes`, which outlive the call.
            drop(unsafe { engine.post(board, number, [1, 2], &parts) });
        }
        _ => {
            let mut lost = Vec::new();
            engine.lost_peers(&mut lost);
            assert!(lost.iter().all(|lost| lost.rank == 1));
            drop(engine.park(&mut |_| true, Duration::ZERO));
        }
    }
}

fn fetch(engine: &mut HostEngine, board: Board, number: u64, input: &mut Input<'_>) {
    let mut bytes = [0; 256];
    let (offset, length) = (usize::from(input.u16()), input.below(257));
    let dst = PartMut { base: bytes.as_mut_ptr(), bytes: length.min(256) };
    // SAFETY:
    // - `dst` lies in `bytes`.
    let fetched = unsafe { engine.fetch(1, board, number, offset, dst) };
    assert!(fetched.is_err() || offset + length <= POST_BYTES);
    assert!(bytes[length.min(256)..].iter().all(|byte| *byte == 0));
}

fn combine(engine: &mut HostEngine, number: u64, input: &mut Input<'_>) {
    let dtype = input.one_of(&DType::ALL);
    let how = Combination {
        count: input.below(20),
        dtype,
        op: input.one_of(&ReduceOp::ALL),
        divisor: u32::from(input.u8()).max(1),
    };
    let own = [0u128; 20];
    let mut out = [0u128; 20];
    let offset = input.below(256);
    // SAFETY:
    // - Both hold twenty elements of the largest type, and are apart.
    drop(unsafe {
        engine.combine(number, offset, own.as_ptr().cast(), out.as_mut_ptr().cast(), how)
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let act = |action: u8, rest: &[u8]| [&[1, 0, action][..], rest, &[1, 0, 4, 0, 2]].concat();
    let all = |start: u8| {
        let mut seed = vec![start];
        for _ in 0..start {
            seed.extend([8, 0, 0, 0]);
        }
        for action in 0..7 {
            seed.extend(act(action, &[1; 6][..usize::from(action) % 6]));
        }
        seed
    };
    vec![all(0), all(1)]
}
