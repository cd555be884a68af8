//! Memory of peers is read where it lies.

use super::drive::Numbers;
use crate::{Engine, EngineError, PartMut, RankState};

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
