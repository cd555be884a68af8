// SPDX-License-Identifier: GPL-2.0

//! `/proc/PID/fdinfo/FD`.

use crate::context::Context;
use kernel::{seq_file::SeqFile, seq_print};

/// What the file has.
pub(crate) fn show(context: &Context, out: &SeqFile) {
    let (count, bytes) = {
        let regions = context.regions.lock();
        (regions.count(), regions.pinned_bytes())
    };
    seq_print!(out, "dma_engine_regions:\t{count}\n");
    seq_print!(out, "dma_engine_pinned_kb:\t{}\n", bytes / 1024);
    if let Some(ring) = context.ring.as_ref() {
        let facts = ring.facts();
        seq_print!(out, "dma_engine_in_flight:\t{}\n", facts.in_flight);
        seq_print!(out, "dma_engine_unread:\t{}\n", facts.unread);
        seq_print!(out, "dma_engine_cq_stalls:\t{}\n", facts.stalls);
    }
}
