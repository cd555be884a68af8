//! What an operation must be before a byte of it is touched.
//!
//! Addresses become pointers here, and a checked operation holds exactly what the kernels
//! require: ranges that are there, may be used so and do not overlap. Nothing here
//! dereferences.

use stepccl_engine::{Address, EngineError};
use stepccl_plan::{DType, ReduceOp};

use crate::region::{Access, RegionTable};

/// Most sources of one reduce.
pub(crate) const MAX_SOURCES: u32 = 4096;

/// A copy that may be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedCopy {
    pub(crate) src: *const u8,
    pub(crate) dst: *mut u8,
    pub(crate) bytes: usize,
}

/// Check a copy of `bytes` bytes.
#[inline]
pub(crate) fn copy(
    regions: &RegionTable,
    src: Address,
    dst: Address,
    bytes: u64,
) -> Result<CheckedCopy, EngineError> {
    let from = regions.resolve(src, bytes, Access::Read)?;
    let to = regions.resolve(dst, bytes, Access::Write)?;
    // It fits: a region of so many bytes is there.
    let length = bytes as usize;
    if overlap(from, to, length) {
        return Err(EngineError::Overlap { src, dst, bytes });
    }
    Ok(CheckedCopy { src: from, dst: to, bytes: length })
}

/// Whether the type has the operation, and can be multiplied if it is to be `scaled`.
pub(crate) fn combination(dtype: DType, op: ReduceOp, scaled: bool) -> Result<(), EngineError> {
    let ops = [op, if scaled { ReduceOp::PremulSum } else { op }];
    match ops.into_iter().find(|op| !op.applies_to(dtype)) {
        Some(op) => Err(EngineError::NotCombinable { op, dtype }),
        None => Ok(()),
    }
}

/// Bytes of `count` elements, and where the result of a reduce goes.
pub(crate) fn reduce_dst(
    regions: &RegionTable,
    sources: usize,
    dst: Address,
    count: u64,
    dtype: DType,
) -> Result<(*mut u8, u64), EngineError> {
    if sources == 0 || sources > MAX_SOURCES as usize {
        return Err(EngineError::BadSources { sources, limit: MAX_SOURCES });
    }
    // A count past 2^64 bytes is out of any bounds.
    let bytes = count.saturating_mul(dtype.size() as u64);
    Ok((regions.resolve(dst, bytes, Access::Write)?, bytes))
}

/// One source of a reduce into `to`, which is the range at `dst`.
#[inline]
pub(crate) fn reduce_src(
    regions: &RegionTable,
    src: Address,
    (to, dst): (*mut u8, Address),
    bytes: u64,
) -> Result<*const u8, EngineError> {
    let from = regions.resolve(src, bytes, Access::Read)?;
    if from != to && overlap(from, to, bytes as usize) {
        return Err(EngineError::Overlap { src, dst, bytes });
    }
    Ok(from)
}

/// Whether ranges of `bytes` bytes share a byte.
#[inline]
fn overlap(a: *const u8, b: *const u8, bytes: usize) -> bool {
    a.addr().abs_diff(b.addr()) < bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stepccl_engine::UserMemory;

    use super::*;
    use crate::region::Registry;

    const BASE: usize = 1 << 20;
    const BYTES: u64 = 1000;

    /// Two regions that share their last and first 100 bytes, the second not writable. Nothing
    /// here is dereferenced, so there need be no memory.
    fn regions() -> (Registry, [Address; 2]) {
        let mut registry = Registry::new();
        let mut register = |at: usize, writable| {
            let base = std::ptr::without_provenance_mut(at);
            let memory = UserMemory { base, bytes: BYTES, writable, streaming: false };
            Address::start_of(registry.register(memory).unwrap())
        };
        let starts = [register(BASE, true), register(BASE + 900, false)];
        (registry, starts)
    }

    fn offsets() -> impl Strategy<Value = u64> {
        prop_oneof![0..BYTES + 100, (1u64 << 40) - 10..1 << 40]
    }

    fn lengths() -> impl Strategy<Value = u64> {
        prop_oneof![0..BYTES + 100, u64::MAX - 2000..=u64::MAX]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn a_copy_is_given_exactly_where_it_may_be_done(
            places in [(0..2usize, offsets()), (0..2usize, offsets())],
            bytes in lengths(),
        ) {
            let (registry, starts) = regions();
            let [src, dst] = places.map(|(region, offset)| {
                starts[region].checked_add(offset).unwrap()
            });
            let at = |(region, offset): (usize, u64)| BASE as u64 + 900 * region as u64 + offset;
            let inside = |(_, offset): (usize, u64)| {
                offset.checked_add(bytes).is_some_and(|end| end <= BYTES)
            };
            let expected = if !inside(places[0]) {
                Err(EngineError::OutOfBounds { address: src, bytes, region_bytes: BYTES })
            } else if !inside(places[1]) {
                Err(EngineError::OutOfBounds { address: dst, bytes, region_bytes: BYTES })
            } else if places[1].0 == 1 {
                Err(EngineError::ReadOnly { address: dst })
            } else if at(places[0]).abs_diff(at(places[1])) < bytes {
                Err(EngineError::Overlap { src, dst, bytes })
            } else {
                Ok((at(places[0]), at(places[1]), bytes))
            };
            let found = copy(registry.table(), src, dst, bytes)
                .map(|c| (c.src.addr() as u64, c.dst.addr() as u64, c.bytes as u64));
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_reduce_never_leaves_its_regions(
            src in offsets(),
            dst in offsets(),
            count in prop_oneof![0..2 * BYTES, u64::MAX / 9..=u64::MAX],
            dtype in prop::sample::select(DType::ALL.to_vec()),
        ) {
            let (registry, starts) = regions();
            let (from, to) = (starts[1].checked_add(src).unwrap(), starts[0].checked_add(dst).unwrap());
            let table = registry.table();
            let checked = reduce_dst(table, 1, to, count, dtype).and_then(|(pointer, bytes)| {
                let source = reduce_src(table, from, (pointer, to), bytes)?;
                Ok((source.addr() as u64, pointer.addr() as u64))
            });
            let bytes = u128::from(count) * dtype.size() as u128;
            let inside = |offset: u64| u128::from(offset) + bytes <= u128::from(BYTES);
            let (a, b) = (BASE as u64 + 900 + src, BASE as u64 + dst);
            let apart = a == b || u128::from(a.abs_diff(b)) >= bytes;
            let allowed = inside(src) && inside(dst) && apart;
            prop_assert_eq!(checked.is_ok(), allowed, "{:?}", checked);
            if let Ok(pointers) = checked {
                prop_assert_eq!(pointers, (a, b));
            }
        }
    }
}
