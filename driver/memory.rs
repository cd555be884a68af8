// SPDX-License-Identifier: GPL-2.0

//! `DMA_ENGINE_REGISTER_MEMORY` and `DMA_ENGINE_UNREGISTER`.

use crate::{
    abi::{
        RegisterMemory, Unregister,
        command::{access, properties},
    },
    argument::{Outcome, check_unused},
    context::Context,
    errno,
    helpers::dma_engine_task_size,
    limits,
    parts::range,
    pins::Pins,
    region::Region,
    regions::Held,
};
use kernel::{page::PAGE_SIZE, prelude::*};

pub(crate) fn register(context: &Context, memory: &mut RegisterMemory) -> Outcome {
    check_unused(memory.flags, memory.reserved)?;
    range::rights(memory.access).map_err(errno)?;
    let pages = range::pages(
        memory.address,
        memory.length,
        limits::MAX_REGION_BYTES,
        dma_engine_task_size() as u64,
        PAGE_SIZE as u32,
    )
    .map_err(errno)?;
    let bytes = pages.count * PAGE_SIZE as u64;
    context.regions.lock().charge(bytes, limits::max_pinned_bytes())?;
    let made =
        Pins::new(&context.mm, &pages, memory.access & access::WRITE != 0).and_then(|pins| {
            let range = (pages.offset, memory.length);
            Region::new(&context.channels, pins, range, memory.access)
        });
    let region = made.inspect_err(|_| context.regions.lock().uncharge(bytes))?;
    let by_channel = region.has_channel();
    // What does not fit into the table is dropped after its lock.
    let inserted = context.regions.lock().insert(Held::Own(region), limits::max_regions());
    memory.region = inserted.map_err(|(error, region)| {
        drop(region);
        context.regions.lock().uncharge(bytes);
        error
    })?;
    memory.properties = properties::CPU | if by_channel { properties::CHANNEL } else { 0 };
    Ok(None)
}

/// The id could not be told: nobody knows the region.
pub(crate) fn undo(context: &Context, memory: &RegisterMemory) {
    let region = context.regions.lock().remove(memory.region);
    drop(region);
}

pub(crate) fn unregister(context: &Context, argument: &mut Unregister) -> Outcome {
    check_unused(argument.flags, argument.reserved)?;
    let region = context.regions.lock().remove(argument.region).ok_or(ENOENT)?;
    // Waits for the operations that use it, then unpins.
    drop(region);
    Ok(None)
}
