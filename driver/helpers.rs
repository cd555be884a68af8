// SPDX-License-Identifier: GPL-2.0

//! What `helpers.c` offers: inlines and macros of the kernel that its crate does not bind.

use kernel::{
    bindings,
    ffi::{c_char, c_int, c_uint, c_ulong, c_void},
};

/// `struct eventfd_ctx`, only ever pointed at.
#[repr(C)]
pub(crate) struct EventfdCtx {
    _opaque: [u8; 0],
}

/// `struct dma_chan`, only ever pointed at.
#[repr(C)]
pub(crate) struct DmaChan {
    _opaque: [u8; 0],
}

/// `struct dmaengine_result`, only ever pointed at.
#[repr(C)]
pub(crate) struct DmaResult {
    _opaque: [u8; 0],
}

/// What a channel calls when a copy is over; must not sleep.
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, *const DmaResult);

#[expect(improper_ctypes, reason = "structs of the kernel that are only pointed at")]
// `helpers.h` has the same prototypes; those marked safe need nothing of their callers.
unsafe extern "C" {
    /// Zeroed memory that can be mapped to user space; null where there is none. Sleeps.
    pub(crate) fn dma_engine_vmalloc_user(bytes: c_ulong) -> *mut c_void;
    /// Free memory of [`dma_engine_vmalloc_user`] that nobody touches any more. Sleeps.
    pub(crate) fn dma_engine_vfree(memory: *mut c_void);
    /// Offset that an area is to be mapped at, in bytes.
    pub(crate) fn dma_engine_vma_offset(vma: *mut bindings::vm_area_struct) -> c_ulong;
    /// Map all of such memory into a new area, which takes references to its pages.
    pub(crate) fn dma_engine_remap(
        vma: *mut bindings::vm_area_struct,
        memory: *mut c_void,
    ) -> c_int;

    /// End of what a process can address.
    pub(crate) safe fn dma_engine_task_size() -> c_ulong;
    /// Whether a NUMA node is there and online.
    pub(crate) safe fn dma_engine_node_online(node: c_int) -> bool;

    /// Bytes that the current process may pin; all ones where it has CAP_IPC_LOCK.
    pub(crate) safe fn dma_engine_memlock_limit() -> c_ulong;
    /// Pages pinned on account of an address space that is referenced.
    pub(crate) fn dma_engine_pinned(mm: *mut bindings::mm_struct) -> c_ulong;
    /// Charge pages to an address space that is referenced; false, and nothing charged, where that
    /// would pass the limit.
    pub(crate) fn dma_engine_charge(
        mm: *mut bindings::mm_struct,
        pages: c_ulong,
        limit: c_ulong,
    ) -> bool;
    /// Take back such a charge.
    pub(crate) fn dma_engine_uncharge(mm: *mut bindings::mm_struct, pages: c_ulong);
    /// Pin pages of the current process for long; returns how many, or -errno. Sleeps.
    pub(crate) fn dma_engine_pin(
        address: c_ulong,
        count: c_int,
        write: bool,
        pages: *mut *mut bindings::page,
    ) -> c_int;
    /// Unpin pages that nobody touches any more. Sleeps.
    pub(crate) fn dma_engine_unpin(pages: *mut *mut bindings::page, count: c_ulong, dirty: bool);
    /// Where the kernel sees a page that is pinned.
    pub(crate) fn dma_engine_page_address(page: *mut bindings::page) -> *mut c_void;

    /// Copy bytes that others may write or read meanwhile; the ranges may overlap.
    pub(crate) fn dma_engine_move(to: *mut c_void, from: *const c_void, bytes: c_ulong);
    /// Fill bytes with a pattern; the last repeat may be cut.
    pub(crate) fn dma_engine_fill(to: *mut c_void, pattern: u64, bytes: c_ulong);

    /// Let others run. Sleeps.
    pub(crate) safe fn dma_engine_cond_resched();
    /// Whether one more message may be printed now.
    pub(crate) safe fn dma_engine_ratelimit() -> bool;

    /// Reference to the eventfd behind a descriptor of the current process, or an error pointer.
    pub(crate) safe fn dma_engine_eventfd_get(fd: c_int) -> *mut EventfdCtx;
    /// Give such a reference back.
    pub(crate) fn dma_engine_eventfd_put(eventfd: *mut EventfdCtx);
    /// Signal an eventfd that is referenced. Does not sleep.
    pub(crate) fn dma_engine_eventfd_signal(eventfd: *mut EventfdCtx);

    /// A channel that copies memory, for this module alone; null where no further one is free. Sleeps.
    pub(crate) safe fn dma_engine_request_channel() -> *mut DmaChan;
    /// Give such a channel back: stops it and waits for its callbacks. Sleeps.
    pub(crate) fn dma_engine_release_channel(channel: *mut DmaChan);
    /// Device that memory is mapped for; lives as long as the channel is held.
    pub(crate) fn dma_engine_channel_device(channel: *mut DmaChan) -> *mut bindings::device;
    /// Name of a channel that is held.
    pub(crate) fn dma_engine_channel_name(channel: *mut DmaChan) -> *const c_char;
    /// Name of the driver of a channel that is held.
    pub(crate) fn dma_engine_channel_provider(channel: *mut DmaChan) -> *const c_char;
    /// What source, destination and length must be a multiple of, for a channel that is held.
    pub(crate) fn dma_engine_channel_align(channel: *mut DmaChan) -> c_uint;
    /// NUMA node of a device, or -1.
    pub(crate) fn dma_engine_device_node(device: *mut bindings::device) -> c_int;
    /// Longest copy of one descriptor.
    pub(crate) fn dma_engine_device_max_segment(device: *mut bindings::device) -> c_uint;
    /// Whether what is mapped for a device needs neither a bounce buffer nor a cache flush.
    pub(crate) fn dma_engine_device_direct(device: *mut bindings::device) -> bool;

    /// Queue a copy between addresses mapped for the device of a channel that is held; false where
    /// the channel takes none. The callback comes once, unless false was returned.
    pub(crate) fn dma_engine_start(
        channel: *mut DmaChan,
        to: bindings::dma_addr_t,
        from: bindings::dma_addr_t,
        bytes: c_ulong,
        callback: Callback,
        parameter: *mut c_void,
    ) -> bool;
    /// Let a channel that is held begin what was queued.
    pub(crate) fn dma_engine_issue(channel: *mut DmaChan);
    /// What a callback was told: 0 success, 1 given up, 2 failed.
    pub(crate) fn dma_engine_result(result: *const DmaResult) -> c_int;

    /// Map pinned pages for a device and fill the table; 0 or -errno. Sleeps.
    pub(crate) fn dma_engine_map(
        device: *mut bindings::device,
        table: *mut bindings::sg_table,
        pages: *mut *mut bindings::page,
        count: c_uint,
        direction: c_int,
    ) -> c_int;
    /// Unmap such a table, which no channel uses any more, and free it. Sleeps.
    pub(crate) fn dma_engine_unmap(
        device: *mut bindings::device,
        table: *mut bindings::sg_table,
        direction: c_int,
    );
    /// The segment after one of a mapped table; null after the last one.
    pub(crate) fn dma_engine_next_segment(
        segment: *mut bindings::scatterlist,
    ) -> *mut bindings::scatterlist;
    /// Address of a mapped segment as the device sees it.
    pub(crate) fn dma_engine_segment_address(
        segment: *mut bindings::scatterlist,
    ) -> bindings::dma_addr_t;
    /// Bytes of a mapped segment.
    pub(crate) fn dma_engine_segment_length(segment: *mut bindings::scatterlist) -> c_uint;

    /// A queue of work of this module; null where there is no memory. Sleeps.
    pub(crate) safe fn dma_engine_alloc_queue() -> *mut bindings::workqueue_struct;
    /// Wait for what is queued, and free the queue. Sleeps.
    pub(crate) fn dma_engine_destroy_queue(queue: *mut bindings::workqueue_struct);

    /// Reference a device that is there.
    pub(crate) fn dma_engine_get_device(device: *mut bindings::device);
    /// Give such a reference back. Sleeps.
    pub(crate) fn dma_engine_put_device(device: *mut bindings::device);
    /// Start a thread of this module, or an error pointer. The parameter stays until it was stopped.
    pub(crate) fn dma_engine_start_thread(
        run: unsafe extern "C" fn(*mut c_void) -> c_int,
        parameter: *mut c_void,
    ) -> *mut bindings::task_struct;
    /// Stop such a thread, once, and wait for its end. Sleeps.
    pub(crate) fn dma_engine_stop_thread(task: *mut bindings::task_struct);
    /// Sleep, in such a thread; whether it was told to stop.
    pub(crate) safe fn dma_engine_sleep_or_stop(milliseconds: c_uint) -> bool;

    /// A new descriptor of the current process for a file with these operations; -errno, and nothing
    /// kept, where there is none. The operations live as long as their module.
    pub(crate) fn dma_engine_get_fd(
        operations: *const bindings::file_operations,
        private: *mut c_void,
    ) -> c_int;
    /// Close a descriptor of the current process.
    pub(crate) safe fn dma_engine_close_fd(fd: c_int);
}
