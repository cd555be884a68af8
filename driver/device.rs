// SPDX-License-Identifier: GPL-2.0

//! The device node and the file operations behind it.
//!
//! The kernel crate's `MiscDevice` has no `poll`, so the table of operations is built here.

use crate::{LocalModule, channels::Channels, context::Context, dispatch, fdinfo};
use kernel::{
    bindings, container_of,
    error::to_result,
    ffi::{c_int, c_long, c_uint, c_ulong},
    fs::File,
    mm::virt::VmaNew,
    module::this_module,
    prelude::*,
    seq_file::SeqFile,
    str::as_char_ptr_in_const_context,
    sync::{Arc, ArcBorrow, poll::PollTable},
    types::{ForeignOwnable, Opaque},
};

/// The registered device node; dropping it takes the node away.
///
/// # Invariants
///
/// `inner` is a `struct miscdevice` registered with `misc_register`.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration {
    channels: Arc<Channels>,
    #[pin]
    inner: Opaque<bindings::miscdevice>,
}

// SAFETY: `misc_deregister` may be called on any thread, and nothing else is done with it.
unsafe impl Send for Registration {}
// SAFETY: The channels may be shared, and the node is only ever deregistered.
unsafe impl Sync for Registration {}

impl Registration {
    /// Make `/dev/dma_device`.
    pub(crate) fn new(channels: Arc<Channels>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // Before the node: it may be opened at once.
            channels: channels,
            // INVARIANT: Initialised only where `misc_register` has succeeded.
            inner <- Opaque::try_ffi_init(|slot: *mut bindings::miscdevice| {
                let mut node: bindings::miscdevice = pin_init::zeroed();
                node.minor = bindings::MISC_DYNAMIC_MINOR as c_int;
                node.name = as_char_ptr_in_const_context(c"dma_device");
                node.fops = &FILE_OPERATIONS.0;
                // SAFETY: The initialiser may write to `slot`.
                unsafe { slot.write(node) };
                // SAFETY: `slot` is a filled struct that is pinned and is deregistered on drop.
                to_result(unsafe { bindings::misc_register(slot) })
            }),
        })
    }
}

#[pinned_drop]
impl PinnedDrop for Registration {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: It is registered by the type invariant.
        unsafe { bindings::misc_deregister(self.inner.get()) };
    }
}

struct FileOperations(bindings::file_operations);

// SAFETY: The table is never written.
unsafe impl Sync for FileOperations {}

static FILE_OPERATIONS: FileOperations = FileOperations(bindings::file_operations {
    // With it, the module stays while a file is open or mapped.
    owner: this_module::<LocalModule>().as_ptr(),
    open: Some(open),
    release: Some(release),
    unlocked_ioctl: Some(ioctl),
    compat_ioctl: bindings::compat_ptr_ioctl,
    mmap: Some(mmap),
    poll: Some(poll),
    show_fdinfo: Some(show_fdinfo),
    ..pin_init::zeroed()
});

/// The context of a file.
///
/// # Safety
///
/// `file` is a file of this device, opened by [`open`] and not yet released, for all of `'a`.
unsafe fn context_of<'a>(file: *mut bindings::file) -> ArcBorrow<'a, Context> {
    // SAFETY: `open` has put it there, and only `release` takes it away.
    unsafe { Arc::<Context>::borrow((*file).private_data) }
}

/// # Safety
///
/// Called by the kernel with a file of this device that is being opened.
unsafe extern "C" fn open(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: `misc_open` has put the registered node there, which stays during this call.
    let registration = unsafe {
        let node = (*file).private_data.cast::<Opaque<bindings::miscdevice>>();
        &*container_of!(node, Registration, inner)
    };
    match Context::new(&registration.channels) {
        Ok(context) => {
            // SAFETY: The private data of a file that is being opened is the driver's.
            unsafe { (*file).private_data = context.into_foreign() };
            0
        }
        Err(error) => error.to_errno(),
    }
}

/// # Safety
///
/// Called by the kernel, once, when nobody has the file any more.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: `open` has put it there, and this is the only place that takes it.
    let context = unsafe { Arc::<Context>::from_foreign((*file).private_data) };
    context.close();
    0
}

/// # Safety
///
/// Called by the kernel with an open file of this device.
unsafe extern "C" fn ioctl(
    file: *mut bindings::file,
    command: c_uint,
    argument: c_ulong,
) -> c_long {
    // SAFETY: The file is open for all of the call.
    let context = unsafe { context_of(file) };
    match dispatch::run(&context, command, argument) {
        Ok(()) => 0,
        Err(error) => error.to_errno() as c_long,
    }
}

/// # Safety
///
/// Called by the kernel with an open file of this device and an area that is being set up.
unsafe extern "C" fn mmap(file: *mut bindings::file, vma: *mut bindings::vm_area_struct) -> c_int {
    // SAFETY: The file is open for all of the call.
    let context = unsafe { context_of(file) };
    // SAFETY: The area is being set up, and nobody else has it yet.
    let area = unsafe { VmaNew::from_raw(vma) };
    match context.map(area) {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// # Safety
///
/// Called by the kernel with an open file of this device and a table that is null or valid.
unsafe extern "C" fn poll(
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
) -> bindings::__poll_t {
    // SAFETY: The file is open for all of the call.
    let context = unsafe { context_of(file) };
    // SAFETY: As above; `poll` holds no position lock.
    let file = unsafe { File::from_raw_file(file) };
    // SAFETY: Valid for all of the call.
    let table = unsafe { PollTable::from_raw(table) };
    context.poll(file, &table)
}

/// # Safety
///
/// Called by the kernel with an open file of this device and a file to print to.
unsafe extern "C" fn show_fdinfo(out: *mut bindings::seq_file, file: *mut bindings::file) {
    // SAFETY: The file is open for all of the call.
    let context = unsafe { context_of(file) };
    // SAFETY: Valid for all of the call, and nobody else prints to it.
    fdinfo::show(&context, unsafe { SeqFile::from_raw(out) });
}
