// SPDX-License-Identifier: GPL-2.0

//! `DMA_ENGINE_RING_SETUP`: make the ring of the file.

use crate::{
    abi::{RingOffsets, RingSetup, ring::NUMA_ANY},
    argument::Outcome,
    context::Context,
    errno,
    helpers::dma_engine_node_online,
    parts::setup::plan,
    ring::Ring,
};
use kernel::{page::PAGE_SIZE, prelude::*};

pub(crate) fn run(context: &Context, setup: &mut RingSetup) -> Outcome {
    let plan = plan(setup, PAGE_SIZE as u32).map_err(errno)?;
    if setup.numa_node != NUMA_ANY && !dma_engine_node_online(setup.numa_node) {
        return Err(EINVAL);
    }
    if context.ring.as_ref().is_some() {
        return Err(EEXIST);
    }
    if !context.ring.populate(Ring::new(&plan)?) {
        return Err(EEXIST);
    }
    setup.cq_entries = plan.cq_entries;
    setup.offsets = RingOffsets { ..plan.offsets };
    setup.map_offset = 0;
    setup.map_bytes = u64::from(plan.bytes);
    Ok(None)
}
