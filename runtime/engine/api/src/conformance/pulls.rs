//! Memory of peers is read and written where it lies.

use std::time::Duration;

use super::drive::Numbers;
use crate::{Engine, EngineError, Part, PartMut, RankState};

/// Every rank reads every rank's memory, at every alignment and past the caches too; what cannot
/// be read is refused; nothing is read of a rank that has given up. Nothing to check for an engine
/// that reads no memory of peers.
///
/// # Panics
///
/// Where that is not so.
pub fn pulls(mut engines: Vec<Box<dyn Engine>>) {
    if !engines[0].capabilities().peer_user_memory {
        return;
    }
    let mut numbers = Numbers(engines.len() as u64);
    let memory: Vec<Vec<u8>> = engines.iter().map(|_| numbers.bytes(300_000)).collect();
    let ranks = engines.len() as u32;
    for (rank, theirs) in (0..ranks).zip(&memory) {
        for (reader, engine) in engines.iter_mut().enumerate() {
            for bytes in [0, 1, 8, 4095, 4097, 131_072, 290_001] {
                let offset = numbers.next() as usize % (theirs.len() - bytes);
                let source = &theirs[offset..offset + bytes];
                let streaming = numbers.next().is_multiple_of(2);
                let mut found = vec![0xa5; bytes + 2];
                let dst = PartMut { base: found.as_mut_ptr().wrapping_add(1), bytes };
                let address = source.as_ptr().expose_provenance() as u64;
                // SAFETY:
                // - `dst` lies in `found`, and the source in memory of this process.
                match unsafe { engine.pull(rank, address, dst, streaming) } {
                    Ok(()) => assert_eq!(&found[1..=bytes], source, "{reader} from {rank}"),
                    Err(EngineError::PeerMemory { .. }) if rank as usize != reader => return,
                    Err(error) => panic!("rank {reader} from rank {rank}: {error}"),
                }
                assert_eq!((found[0], found[bytes + 1]), (0xa5, 0xa5), "bytes around");
            }
        }
    }
    if ranks < 2 {
        return;
    }
    let read = |engine: &mut dyn Engine, address: u64| {
        let mut found = [0u8; 16];
        let dst = PartMut { base: found.as_mut_ptr(), bytes: found.len() };
        // SAFETY:
        // - `dst` is all of `found`.
        unsafe { engine.pull(1, address, dst, false) }
    };
    let good = memory[1].as_ptr().expose_provenance() as u64;
    for nowhere in [0, 4096, u64::MAX - 7, 1 << 62] {
        let answer = read(engines[0].as_mut(), nowhere);
        assert!(matches!(answer, Err(EngineError::PeerMemory { rank: 1, .. })), "{answer:?}");
    }
    assert_eq!(read(engines[0].as_mut(), good), Ok(()));
    engines[1].announce(RankState::Failed { culprit: 1 });
    let answer = read(engines[0].as_mut(), good);
    assert!(matches!(answer, Err(EngineError::PeerMemory { rank: 1, .. })), "{answer:?}");
}

/// Every rank writes every other's memory, at every alignment, and nothing around it; what cannot be
/// written is refused; nothing is written to a rank that has given up. Nothing to check for an
/// engine that writes no memory of peers.
///
/// # Panics
///
/// Where that is not so.
pub fn pushes(mut engines: Vec<Box<dyn Engine>>) {
    let ranks = engines.len() as u32;
    if !engines[0].capabilities().peer_user_memory || ranks < 2 {
        return;
    }
    let mut numbers = Numbers(engines.len() as u64 + 77);
    for to in 0..ranks {
        for from in (0..ranks).filter(|from| *from != to) {
            for bytes in [0, 1, 8, 4095, 4097, 131_072, 290_001] {
                let given = numbers.bytes(bytes);
                let offset = 1 + numbers.next() as usize % 5000;
                let mut memory = vec![0xa5u8; offset + bytes + 1];
                let address = memory[offset..].as_mut_ptr().expose_provenance() as u64;
                let src = Part { base: given.as_ptr(), bytes };
                // SAFETY:
                // - `src` is all of `given`.
                match unsafe { engines[from as usize].push(to, address, src) } {
                    Ok(()) => assert_eq!(&memory[offset..offset + bytes], given, "{from} to {to}"),
                    Err(EngineError::PeerMemory { .. }) => return,
                    Err(error) => panic!("rank {from} to rank {to}: {error}"),
                }
                let around = [&memory[..offset], &memory[offset + bytes..]].concat();
                assert!(around.iter().all(|byte| *byte == 0xa5), "bytes around");
            }
        }
    }
    let given = [7u8; 16];
    let mut memory = [0xa5u8; 16];
    let good = memory.as_mut_ptr().expose_provenance() as u64;
    let write = |engine: &mut dyn Engine, address: u64| {
        // SAFETY:
        // - The part is all of `given`.
        unsafe { engine.push(1, address, Part { base: given.as_ptr(), bytes: given.len() }) }
    };
    for nowhere in [0, 4096, u64::MAX - 7, 1 << 62] {
        let answer = write(engines[0].as_mut(), nowhere);
        assert!(matches!(answer, Err(EngineError::PeerMemory { rank: 1, .. })), "{answer:?}");
    }
    engines[1].announce(RankState::Failed { culprit: 1 });
    assert!(engines[1].settle(Duration::ZERO), "nobody writes");
    let answer = write(engines[0].as_mut(), good);
    assert!(matches!(answer, Err(EngineError::PeerMemory { rank: 1, .. })), "{answer:?}");
    assert_eq!(memory, [0xa5; 16], "written after all");
}
