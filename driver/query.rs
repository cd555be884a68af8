// SPDX-License-Identifier: GPL-2.0

//! `DMA_ENGINE_QUERY`: who talks to whom, and what is possible.

use crate::{
    abi::{
        Query,
        version::{ABI_OLDEST, ABI_VERSION, compatible, feature},
    },
    argument::{Outcome, check_unused},
    context::Context,
    helpers::dma_engine_memlock_limit,
    limits,
    parts::setup::MAX_ENTRIES,
};
use kernel::{bindings, prelude::*};

/// This node, until a proxy gives it a number.
pub(crate) const NODE: u16 = 0;

pub(crate) fn run(context: &Context, query: &mut Query) -> Outcome {
    check_unused(query.flags, 0)?;
    if query.reserved != [0; 3] {
        return Err(EINVAL);
    }
    let channels = if context.channels.count() > 0 { feature::CHANNELS } else { 0 };
    let limit = dma_engine_memlock_limit();
    *query = Query {
        size: query.size,
        abi_version: query.abi_version,
        abi_oldest: query.abi_oldest,
        driver_version: ABI_VERSION,
        driver_oldest: ABI_OLDEST,
        features: feature::FILL | feature::SIGNAL | feature::EXPORT | channels,
        node: NODE,
        channels: context.channels.count(),
        copy_align: context.channels.align(),
        max_entries: MAX_ENTRIES,
        max_in_flight: limits::MAX_IN_FLIGHT,
        max_regions: limits::max_regions(),
        op_timeout_ms: limits::op_timeout_ms(),
        max_region_bytes: limits::MAX_REGION_BYTES,
        pinned_limit_bytes: (limit as u64).min(limits::max_pinned_bytes()),
        pinned_bytes: context.pinned_bytes(),
        ..Query::default()
    };
    if !compatible(query.abi_version, query.abi_oldest, ABI_VERSION, ABI_OLDEST) {
        return Ok(Some(crate::errno(bindings::EPROTONOSUPPORT as i32)));
    }
    context.set_queried();
    Ok(None)
}
