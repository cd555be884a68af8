// SPDX-License-Identifier: GPL-2.0

//! What one file may have, from the parameters of the module.

use crate::{module_parameters, parts::slots::MAX_SLOTS};

/// Largest region: the list of its pages must be one allocation.
pub(crate) const MAX_REGION_BYTES: u64 = 1 << 38;

/// Milliseconds after which a channel that ends nothing is given up, and its operations with it.
pub(crate) fn op_timeout_ms() -> u32 {
    (*module_parameters::op_timeout_ms.value_ref()).max(1000)
}

/// Operations of one file that run at once.
pub(crate) const MAX_IN_FLIGHT: u32 = 4096;

/// Channels of the module.
pub(crate) fn max_channels() -> usize {
    *module_parameters::max_channels.value_ref() as usize
}

/// Bytes from which on a copy is worth a channel.
pub(crate) fn channel_bytes() -> u64 {
    (*module_parameters::channel_bytes.value_ref()).into()
}

/// Regions of one file.
pub(crate) fn max_regions() -> u32 {
    (*module_parameters::max_regions.value_ref()).clamp(1, MAX_SLOTS)
}

/// Bytes that one file may pin, whatever its process may.
pub(crate) fn max_pinned_bytes() -> u64 {
    match *module_parameters::max_pinned_mb.value_ref() {
        0 => u64::MAX,
        mib => mib.saturating_mul(1 << 20),
    }
}
