//! Boards carry short messages.

use std::time::Instant;

use stepccl_plan::{DType, ReduceOp, Targets};

use super::drive::{NAP, Numbers, PATIENCE};
use crate::{Board, Combination, Engine, EngineError, Look, Part, PartMut};

/// Posts are absent, then there for whom they are meant, then replaced; every byte of their data
/// arrives, in pieces or in one; sleepers see them; what does not fit is refused. Nothing to check for an engine without
/// boards.
///
/// # Panics
///
/// Where that is not so.
pub fn boards(mut engines: Vec<Box<dyn Engine>>) {
    let ranks = engines.len() as u32;
    let boards =
        std::iter::once(Board::Collective).chain((0..ranks).map(Board::Pair)).collect::<Vec<_>>();
    for board in boards {
        let Some(shape) = engines[0].board(board) else { continue };
        assert!(shape.posts.is_power_of_two(), "{board:?}: {shape:?}");
        exchange(&mut engines, board, shape.bytes, u64::from(shape.posts));
        refused(engines[0].as_mut(), board, shape.bytes);
    }
    let outside = Board::Pair(ranks);
    assert_eq!(engines[0].board(outside), None);
    if engines[0].board(Board::Collective).is_some() {
        let nobody = engines[0].look(ranks, Board::Collective, 0);
        assert!(matches!(nobody, Err(EngineError::NoPost { .. })), "{nobody:?}");
        sums(&mut engines);
        sleepers(engines);
    }
}

fn exchange(engines: &mut [Box<dyn Engine>], board: Board, limit: usize, posts: u64) {
    let mut numbers = Numbers(limit as u64);
    let lengths = [0, 1, 7, 8, 39, 40, 41, 64, 65, limit / 2, limit.saturating_sub(1), limit];
    for (number, length) in (0..).zip(lengths.into_iter().filter(|l| *l <= limit).cycle().take(40))
    {
        for writer in 0..engines.len() {
            let from = writer as u32;
            let reads = |rank: u32| board == Board::Collective || board == Board::Pair(rank);
            let absent = (0..).zip(engines.iter()).all(|(rank, engine)| {
                !reads(rank) || engine.look(from, board, number) == Ok(Look::Absent)
            });
            assert!(absent, "post {number} of rank {from} is there before it was made");
            let data = numbers.bytes(length);
            let cut = if length == 0 { 0 } else { numbers.next() as usize % length };
            let part = |bytes: &[u8]| Part { base: bytes.as_ptr(), bytes: bytes.len() };
            let parts = [part(&data[..cut]), part(&data[cut..])];
            let words = [numbers.next(), numbers.next()];
            // SAFETY:
            // - The parts are slices that live during the call.
            unsafe { engines[writer].post(board, number, words, &parts) }.expect("a post");
            for (_, engine) in (0..).zip(engines.iter_mut()).filter(|(rank, _)| reads(*rank)) {
                wait(engine.as_mut(), from, board, number);
                assert_eq!(engine.look(from, board, number), Ok(Look::Here(words)));
                let offset = if length == 0 { 0 } else { numbers.next() as usize % length };
                let mut out = vec![0xa5_u8; length - offset];
                let dst = PartMut { base: out.as_mut_ptr(), bytes: out.len() };
                // SAFETY:
                // - `out` is a buffer of so many bytes.
                unsafe { engine.fetch(from, board, number, offset, dst) }.expect("a fetch");
                assert_eq!(out, data[offset..], "post {number} of rank {from} at {offset}");
                if let Some(before) = number.checked_sub(posts) {
                    assert_eq!(engine.look(from, board, before), Ok(Look::Past));
                }
            }
        }
    }
}

fn refused(engine: &mut dyn Engine, board: Board, limit: usize) {
    let data = vec![0; limit + 1];
    let part = Part { base: data.as_ptr(), bytes: data.len() };
    // SAFETY:
    // - The part is a slice that lives during the call.
    let answer = unsafe { engine.post(board, 1000, [0; 2], &[part]) };
    assert!(matches!(answer, Err(EngineError::NoPost { .. })), "{answer:?}");
    let mut out = vec![0xa5_u8; 2];
    let dst = PartMut { base: out.as_mut_ptr(), bytes: 2 };
    // SAFETY:
    // - `out` is a buffer of two bytes.
    let answer = unsafe { engine.fetch(0, board, 39, limit - 1, dst) };
    assert!(matches!(answer, Err(EngineError::NoPost { .. })), "{answer:?}");
    assert_eq!(out, [0xa5; 2]);
}

/// Sums of what every rank posted, into memory apart and into this rank's input itself.
fn sums(engines: &mut [Box<dyn Engine>]) {
    let (count, skipped, number) = (9, 2, 100);
    let ranks = engines.len() as u32;
    let value = |rank: usize, i: usize| (rank * 100 + i) as i64;
    let inputs: Vec<Vec<i64>> =
        (0..engines.len()).map(|r| (0..count + skipped).map(|i| value(r, i)).collect()).collect();
    for (engine, input) in engines.iter_mut().zip(&inputs) {
        let part = Part { base: input.as_ptr().cast(), bytes: size_of_val(&input[..]) };
        // SAFETY:
        // - The part is a slice that lives during the call.
        unsafe { engine.post(Board::Collective, number, [1, 2], &[part]) }.expect("a post");
    }
    let all: Vec<i64> =
        (0..count).map(|i| (0..engines.len()).map(|r| value(r, i + skipped)).sum()).collect();
    let how = Combination { count, dtype: DType::I64, op: ReduceOp::Sum, divisor: 1 };
    for (engine, input) in engines.iter_mut().zip(inputs) {
        for from in 0..ranks {
            wait(engine.as_mut(), from, Board::Collective, number);
        }
        let (mut apart, mut within) = (vec![-1_i64; count], input[skipped..].to_vec());
        for (out, own) in [
            (apart.as_mut_ptr(), input[skipped..].as_ptr()),
            (within.as_mut_ptr(), within.as_ptr()),
        ] {
            // SAFETY:
            // - Both have `count` elements, and are the same or apart.
            unsafe { engine.combine(number, skipped * 8, own.cast(), out.cast(), how) }
                .expect("a sum");
        }
        assert_eq!((&apart, &within), (&all, &all));
    }
}

/// Each rank in turn posts for the others, which park at once; a lost wake-up would take a nap.
fn sleepers(engines: Vec<Box<dyn Engine>>) {
    let ranks = engines.len() as u32;
    std::thread::scope(|scope| {
        for (rank, mut engine) in (0..).zip(engines) {
            scope.spawn(move || {
                for number in 200..400 {
                    let from = number as u32 % ranks;
                    if from == rank {
                        // Nobody is a board ahead of anybody.
                        (0..ranks).filter(|r| *r != rank).for_each(|r| {
                            wait(engine.as_mut(), r, Board::Pair(rank), number - 1);
                        });
                        // SAFETY:
                        // - There are no parts.
                        unsafe { engine.post(Board::Collective, number, [number, 0], &[]) }
                            .expect("a post");
                        engine.ring(Targets::All).expect("a ring");
                    } else {
                        // SAFETY:
                        // - There are no parts.
                        unsafe { engine.post(Board::Pair(from), number - 1, [0; 2], &[]) }
                            .expect("a post");
                        engine.ring(Targets::One(from)).expect("a ring");
                        wait(engine.as_mut(), from, Board::Collective, number);
                    }
                }
            });
        }
    });
}

fn wait(engine: &mut dyn Engine, from: u32, board: Board, number: u64) {
    let there = |engine: &dyn Engine| engine.look(from, board, number) != Ok(Look::Absent);
    let start = Instant::now();
    while !there(engine) {
        assert!(start.elapsed() < PATIENCE, "post {number} of rank {from} on {board:?}");
        engine.park(&mut |engine| there(engine), NAP).expect("a park");
    }
}
