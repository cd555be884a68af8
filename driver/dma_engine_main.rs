// SPDX-License-Identifier: GPL-2.0

//! `/dev/dma_device`: asynchronous copies between registered memory for unprivileged processes.
//!
//! `uapi/include/dma_engine.h` has the interface, `Documentation/driver.md` the design. Unsafe code
//! is in the files that wrap one thing of the kernel each: `device.rs` (file operations),
//! `argument.rs` (arguments of ioctls), `shared.rs` (memory of a ring), `pins.rs` (pinned pages),
//! `region.rs` (use of a region by operations), `eventfd.rs` and `helpers.rs`.

use kernel::prelude::*;

// The ABI and the parts have more than the module uses; both are tested on the host.
#[allow(dead_code, unused_imports, unreachable_pub)]
#[path = "../uapi/src/abi/mod.rs"]
mod abi;
#[allow(dead_code, unreachable_pub)]
mod parts;

mod argument;
mod channel;
mod channels;
mod context;
mod copy;
mod device;
mod dispatch;
mod enter;
mod eventfd;
mod export;
mod fdinfo;
mod flight;
mod grant;
mod helpers;
mod limits;
mod mapping;
mod memory;
mod pins;
mod query;
mod queue;
mod region;
mod regions;
mod ring;
mod setup;
mod shared;
mod submit;
mod users;
mod watch;

module! {
    type: DmaEngine,
    name: "dma_engine",
    authors: ["The StepCCL developers"],
    description: "DMA copies between registered memory for unprivileged processes",
    license: "GPL",
    params: {
        max_channels: u32 {
            default: 64,
            description: "hardware channels to hold; 0: the CPU copies",
        },
        channel_bytes: u32 {
            default: 4096,
            description: "copies shorter than this are left to the CPU",
        },
        op_timeout_ms: u32 {
            default: 10000,
            description: "milliseconds after which a channel that ends nothing is given up, 1000 or more",
        },
        max_regions: u32 {
            default: 4096,
            description: "regions of one file, 1 to 16384",
        },
        max_pinned_mb: u64 {
            default: 0,
            description: "MiB that one file may pin; 0: only RLIMIT_MEMLOCK limits",
        },
    },
}

#[pin_data]
struct DmaEngine {
    #[pin]
    device: device::Registration,
    // Dropped after the node: while a file is open it may have to end what is in flight.
    _watch: Option<watch::Watch>,
}

impl kernel::InPlaceModule for DmaEngine {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        let (version, oldest) = (abi::version::ABI_VERSION, abi::version::ABI_OLDEST);
        let channels = channels::Channels::find();
        match channels.as_ref().map_or(0, |channels| channels.count()) {
            0 => pr_info!("ABI {version}, oldest {oldest}; no channel: the CPU copies\n"),
            count => pr_info!("ABI {version}, oldest {oldest}; {count} channels\n"),
        }
        let made = channels.and_then(|channels| {
            let watch = watch::Watch::start(&channels)?;
            Ok((channels, watch))
        });
        pin_init::pin_init_scope(move || {
            let (channels, watch) = made?;
            Ok(try_pin_init!(Self {
                _watch: watch,
                device <- device::Registration::new(channels),
            }))
        })
    }
}

/// The kernel's error of a positive errno of the ABI or of a part.
fn errno(positive: i32) -> Error {
    Error::from_errno(-positive)
}
