//! What breaks a rule is refused with the error that names it, and nothing moves.

use stepccl_plan::{DType, ReduceOp, Targets};

use crate::{Address, Engine, EngineError, Operation, RegionId, Scale, UserMemory};

use super::buffer::Buffer;
use super::drive::{copy, run};

const BYTES: usize = 1024;

/// Bad addresses, alignments, overlaps, sources, regions and flags.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn refusals(mut engines: Vec<Box<dyn Engine>>) {
    let ranks = engines.len() as u32;
    for engine in &mut engines {
        let engine = &mut **engine;
        let (user, fixed) = (Buffer::new(engine, BYTES, true), Buffer::new(engine, BYTES, false));
        let before: Vec<u8> = (0..BYTES).map(|at| at as u8).collect();
        user.write(0, &before);
        bad_copies(engine, &user, &fixed);
        if engine.capabilities().reduces {
            bad_reduces(engine, &user, &fixed);
        }
        assert_eq!(user.read(0, BYTES), before, "a refused operation moved something");
        assert_eq!(fixed.read(0, BYTES), [0; BYTES], "read-only memory was written");
        bad_regions(engine);
        bad_flags(engine, ranks);
        // The engine still works.
        copy(engine, user.at(0), user.at(512), 512);
        assert_eq!(user.read(512, 512), before[..512]);
        fixed.forget(engine);
        user.forget(engine);
    }
}

fn bad_copies(engine: &mut dyn Engine, user: &Buffer, fixed: &Buffer) {
    let stale = Buffer::new(engine, BYTES, true);
    let gone = stale.at(0);
    stale.forget(engine);
    let never = RegionId::new((1 << 24) - 1).map(Address::start_of).expect("a region id");
    let end = user.at(BYTES);
    for unknown in [gone, never, Address::from_raw(0), Address::from_raw(u64::MAX)] {
        for (src, dst) in [(unknown, user.at(0)), (user.at(0), unknown)] {
            let answer = run(engine, &Operation::Copy { src, dst, bytes: 8 });
            assert_eq!(answer, Err(EngineError::UnknownRegion { address: unknown }));
        }
    }
    for (address, bytes) in [
        (end, 1),
        (user.at(BYTES - 7), 8),
        (user.at(0), BYTES as u64 + 1),
        (user.at(8), u64::MAX),
        (user.at(8), u64::MAX - 7),
        (user.at(1 << 39), 1),
    ] {
        let region_bytes = BYTES as u64;
        let expected = Err(EngineError::OutOfBounds { address, bytes, region_bytes });
        let answer = run(engine, &Operation::Copy { src: address, dst: user.at(0), bytes });
        assert_eq!(answer, expected);
        // The source is checked first, so it must be long enough to see the other.
        if bytes <= region_bytes {
            let answer = run(engine, &Operation::Copy { src: fixed.at(0), dst: address, bytes });
            assert_eq!(answer, expected);
        }
    }
    assert_eq!(run(engine, &Operation::Copy { src: user.at(0), dst: end, bytes: 0 }), Ok(0));
    let (src, dst) = (user.at(0), fixed.at(0));
    let answer = run(engine, &Operation::Copy { src, dst, bytes: 8 });
    assert_eq!(answer, Err(EngineError::ReadOnly { address: dst }));
    for (first, second, bytes) in [(0, 0, 1), (0, 7, 8), (7, 0, 8), (0, 511, 512)] {
        let (src, dst) = (user.at(first), user.at(second));
        let answer = run(engine, &Operation::Copy { src, dst, bytes });
        assert_eq!(answer, Err(EngineError::Overlap { src, dst, bytes }));
    }
}

fn bad_reduces(engine: &mut dyn Engine, user: &Buffer, fixed: &Buffer) {
    let mut reduce = |srcs: &[Address], dst: Address, count: u64, dtype: DType| {
        run(
            engine,
            &Operation::Reduce {
                srcs,
                dst,
                count,
                dtype,
                op: ReduceOp::Sum,
                divisor: 1,
                scale: None,
            },
        )
    };
    let none = reduce(&[], user.at(0), 1, DType::F32);
    assert!(matches!(none, Err(EngineError::BadSources { sources: 0, .. })), "{none:?}");
    let (src, dst) = (user.at(8), user.at(0));
    let answer = reduce(&[fixed.at(0), src], dst, 4, DType::F32);
    assert_eq!(answer, Err(EngineError::Overlap { src, dst, bytes: 16 }));
    let dst = fixed.at(0);
    let answer = reduce(&[user.at(0), user.at(64)], dst, 4, DType::F32);
    assert_eq!(answer, Err(EngineError::ReadOnly { address: dst }));
    for count in [257, 1 << 40, 1 << 62, u64::MAX] {
        let answer = reduce(&[user.at(0), fixed.at(0)], user.at(0), count, DType::F32);
        assert!(matches!(answer, Err(EngineError::OutOfBounds { .. })), "{count}: {answer:?}");
    }
    let most = engine.capabilities().max_reduce_sources as usize;
    if most < 1 << 20 {
        let srcs = vec![fixed.at(0); most + 1];
        let answer = run(
            engine,
            &Operation::Reduce {
                srcs: &srcs,
                dst: user.at(0),
                count: 1,
                dtype: DType::U8,
                op: ReduceOp::Max,
                divisor: 1,
                scale: None,
            },
        );
        assert!(matches!(answer, Err(EngineError::BadSources { .. })), "{answer:?}");
    }
    combinations_that_are_none(engine, user);
}

fn combinations_that_are_none(engine: &mut dyn Engine, user: &Buffer) {
    let srcs = [user.at(0), user.at(64)];
    let scale = Some(Scale { source: 0, factor: 2.0 });
    let (dst, count, divisor) = (user.at(512), 1, 1);
    for dtype in DType::ALL {
        for op in ReduceOp::ALL.into_iter().filter(|op| !op.applies_to(dtype)) {
            let operation =
                Operation::Reduce { srcs: &srcs, dst, count, dtype, op, divisor, scale: None };
            let answer = run(engine, &operation);
            assert_eq!(answer, Err(EngineError::NotCombinable { op, dtype }));
        }
        if !ReduceOp::PremulSum.applies_to(dtype) {
            let op = ReduceOp::Sum;
            let operation =
                Operation::Reduce { srcs: &srcs, dst, count, dtype, op, divisor, scale };
            let expected = EngineError::NotCombinable { op: ReduceOp::PremulSum, dtype };
            assert_eq!(run(engine, &operation), Err(expected));
        }
    }
}

fn bad_regions(engine: &mut dyn Engine) {
    let null =
        UserMemory { base: std::ptr::null_mut(), bytes: 1, writable: false, streaming: false };
    let mut byte = 0u8;
    let long =
        UserMemory { base: &raw mut byte, bytes: (1 << 40) + 1, writable: false, streaming: false };
    for memory in [null, long] {
        // SAFETY:
        // - Refused, so that no operation can use it.
        let answer = unsafe { engine.register(memory) };
        assert!(matches!(answer, Err(EngineError::BadRegion { .. })), "{memory:?}: {answer:?}");
    }
    let never = RegionId::new((1 << 24) - 1).expect("a region id");
    let answer = engine.unregister(never);
    assert!(matches!(answer, Err(EngineError::UnknownRegion { .. })), "{answer:?}");
    // Staging is the engine's own and stays.
    if let Some(region) = engine.staging(0).and_then(|area| RegionId::new(area.base.region())) {
        assert!(engine.unregister(region).is_err(), "staging was unregistered");
        assert!(engine.staging(0).is_some());
    }
}

fn bad_flags(engine: &mut dyn Engine, ranks: u32) {
    let flags = engine.capabilities().flags;
    for (rank, flag) in [(0, flags), (0, u32::MAX), (ranks, 0), (u32::MAX, 0)] {
        let expected = EngineError::UnknownFlag { rank, flag, flags };
        assert_eq!(engine.flag(rank, flag), Err(expected.clone()));
        assert_eq!(engine.signal(Targets::One(rank), flag, u64::MAX), Err(expected));
    }
    let answer = engine.signal(Targets::All, flags, u64::MAX);
    assert!(matches!(answer, Err(EngineError::UnknownFlag { .. })), "{answer:?}");
    for rank in 0..ranks {
        assert_eq!(engine.flag(rank, 0), Ok(0), "a refused signal raised a flag");
    }
    assert_eq!(engine.staging(ranks), None);
}
