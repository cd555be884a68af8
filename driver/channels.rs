// SPDX-License-Identifier: GPL-2.0

//! The channels of the module: found when it is loaded, held until it is removed.

use crate::{channel::Channel, limits, queue::Queue};
use core::ptr::NonNull;
use kernel::{bindings, prelude::*, sync::Arc};

/// The channels of the module.
pub(crate) struct Channels {
    // Dropped, and so emptied, before the channels.
    queue: Queue,
    all: KVec<Pin<KBox<Channel>>>,
    align: u32,
}

impl Channels {
    /// Hold every channel that can be used, up to the limit, and say in the log what was found.
    pub(crate) fn find() -> Result<Arc<Self>> {
        let mut all = KVec::new();
        let limit = limits::max_channels();
        // Channels that cannot be used are held until the search is over, or they come again.
        let mut unusable = KVec::new();
        while all.len() < limit {
            let Some(channel) = Channel::request()? else {
                break;
            };
            let (name, provider) = channel.names();
            if channel.is_direct() {
                pr_info!(
                    "channel {} of {}: NUMA node {}, copies up to {} bytes, alignment {}\n",
                    name,
                    provider,
                    channel.node(),
                    channel.longest,
                    channel.align
                );
                all.push(channel, GFP_KERNEL)?;
            } else {
                pr_info!(
                    "channel {} of {} is not used: its device needs bounce buffers or cache flushes\n",
                    name,
                    provider
                );
                unusable.push(channel, GFP_KERNEL)?;
            }
        }
        let align = all.iter().map(|channel| channel.align).max().unwrap_or(1);
        Ok(Arc::new(Self { queue: Queue::new()?, all, align }, GFP_KERNEL)?)
    }

    /// Where what a callback may not do is done.
    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    fn alive(&self) -> impl Iterator<Item = &Channel> {
        self.all.iter().map(|channel| &**channel).filter(|channel| !channel.is_dead())
    }

    /// How many are in use.
    pub(crate) fn count(&self) -> u32 {
        self.alive().count() as u32
    }

    /// What source, destination and length must be a multiple of for any of them.
    pub(crate) fn align(&self) -> u32 {
        self.align
    }

    /// Each device that memory must be mapped for, once.
    pub(crate) fn devices(&self) -> impl Iterator<Item = NonNull<bindings::device>> + '_ {
        self.all.iter().enumerate().filter_map(|(index, channel)| {
            let device = channel.device();
            let before = self.all.iter().take(index);
            (!before.into_iter().any(|other| other.device() == device)).then_some(device)
        })
    }

    /// The least busy channel of the devices that `reaches` says yes to.
    pub(crate) fn choose(
        &self,
        reaches: impl Fn(NonNull<bindings::device>) -> bool,
    ) -> Option<&Channel> {
        let usable = self.alive().filter(|channel| reaches(channel.device()));
        usable.min_by_key(|channel| channel.busy())
    }

    /// Called every `period_ms`: give those up that do not answer any more.
    pub(crate) fn look(&self, period_ms: u32) {
        for channel in self.alive() {
            channel.look(period_ms);
        }
    }

    /// Begin what was queued on any of them.
    pub(crate) fn issue(&self) {
        for channel in &self.all {
            channel.issue();
        }
    }
}
