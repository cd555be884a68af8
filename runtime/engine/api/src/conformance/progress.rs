//! Many operations at once, regions in use, and counters.

use std::collections::HashMap;

use stepccl_plan::{DType, ReduceOp, Targets};

use crate::{Engine, EngineError, Operation, Submission};

use super::buffer::Buffer;
use super::drive::{Numbers, copy, finish, reap, run, submit};

/// Long enough for any engine's channels.
const PIECE: usize = 128 << 10;
/// More than a ring holds.
const PIECES: usize = 300;

/// Copies submitted without waiting all arrive; a full engine says so, counts it, and goes on.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn many_at_once(mut engines: Vec<Box<dyn Engine>>) {
    for engine in &mut engines {
        let engine = &mut **engine;
        let from = Buffer::new(engine, PIECE, false);
        let to = Buffer::new(engine, PIECE * PIECES, true);
        let payload = Numbers(3).bytes(PIECE);
        from.write(0, &payload);
        let (mut tokens, mut ended) = (HashMap::new(), HashMap::new());
        let before = engine.counters();
        let mut full = 0;
        for piece in 0..PIECES {
            let bytes = PIECE as u64;
            let operation = Operation::Copy { src: from.at(0), dst: to.at(piece * PIECE), bytes };
            let token = match engine.submit(&operation).expect("a copy") {
                Submission::Done => None,
                Submission::InProgress(token) => Some(token),
                Submission::Full => {
                    full += 1;
                    submit(engine, &operation, &mut ended).expect("a copy")
                }
            };
            if let Some(token) = token {
                assert!(tokens.insert(token, bytes).is_none(), "{token:?} was given twice");
            }
        }
        for (token, result) in ended {
            assert_eq!(result, Ok(PIECE as u64));
            assert!(tokens.remove(&token).is_some(), "{token:?} was never given");
        }
        let in_progress = tokens.len();
        finish(engine, tokens);
        assert!(engine.capabilities().channels > 0 || in_progress + full == 0);
        for piece in 0..PIECES {
            assert!(to.read(piece * PIECE, PIECE) == payload, "piece {piece}");
        }
        let now = engine.counters();
        assert_eq!(now.copied_bytes - before.copied_bytes, (PIECE * PIECES) as u64);
        let done = now.inline_operations + now.channel_operations;
        let earlier = before.inline_operations + before.channel_operations;
        assert_eq!(done - earlier, PIECES as u64);
        assert!(now.full - before.full >= full as u64);
        assert_eq!(reap(engine, &mut HashMap::new()), 0, "an end without a beginning");
        from.forget(engine);
        to.forget(engine);
    }
}

/// A region stays while an operation in progress uses it, until that is reaped.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn regions_in_use(mut engines: Vec<Box<dyn Engine>>) {
    for engine in &mut engines {
        let engine = &mut **engine;
        let from = Buffer::new(engine, PIECE, false);
        let to = Buffer::new(engine, PIECE, true);
        let bytes = PIECE as u64;
        let operation = Operation::Copy { src: from.at(0), dst: to.at(0), bytes };
        if let Some(token) = submit(engine, &operation, &mut HashMap::new()).expect("a copy") {
            for region in [from.region, to.region] {
                let busy = EngineError::RegionBusy { region: region.get() };
                assert_eq!(engine.unregister(region), Err(busy));
            }
            finish(engine, HashMap::from([(token, bytes)]));
        }
        from.forget(engine);
        to.forget(engine);
    }
}

/// Every byte and operation is counted once.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn counters(mut engines: Vec<Box<dyn Engine>>) {
    for engine in &mut engines {
        let engine = &mut **engine;
        let user = Buffer::new(engine, 4096, true);
        let start = engine.counters();
        copy(engine, user.at(0), user.at(1024), 1000);
        copy(engine, user.at(0), user.at(1024), 24);
        engine.signal(Targets::All, 0, 1).expect("a signal");
        let refused = Operation::Copy { src: user.at(0), dst: user.at(0), bytes: 1 };
        assert!(run(engine, &refused).is_err());
        let mut operations = 2;
        let mut reduced = 0;
        if engine.capabilities().reduces {
            let operation = Operation::Reduce {
                srcs: &[user.at(0), user.at(256)],
                dst: user.at(512),
                count: 10,
                dtype: DType::F64,
                op: ReduceOp::Sum,
                divisor: 1,
                scale: None,
            };
            assert_eq!(run(engine, &operation), Ok(80));
            (operations, reduced) = (3, 80);
        }
        let end = engine.counters();
        assert_eq!(end.copied_bytes - start.copied_bytes, 1024);
        assert_eq!(end.reduced_bytes - start.reduced_bytes, reduced);
        let done = end.inline_operations + end.channel_operations;
        assert_eq!(done - start.inline_operations - start.channel_operations, operations);
        assert_eq!(end.signals - start.signals, 1);
        user.forget(engine);
    }
}
