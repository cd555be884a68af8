// SPDX-License-Identifier: GPL-2.0

//! `DMA_ENGINE_EXPORT` and `DMA_ENGINE_IMPORT`: a region in another file, by a capability.
//!
//! The capability is a file of its own kind, which can do nothing but be imported and be closed.

use crate::{
    LocalModule,
    abi::{Export, Import as Argument},
    argument::{Outcome, check_unused},
    context::Context,
    errno,
    grant::{Grant, Import},
    helpers::{dma_engine_close_fd, dma_engine_get_fd},
    limits,
    parts::range,
    regions::Held,
};
use kernel::{
    bindings,
    ffi::c_int,
    fs::LocalFile,
    module::this_module,
    prelude::*,
    sync::{Arc, ArcBorrow},
    types::ForeignOwnable,
};

struct FileOperations(bindings::file_operations);

// SAFETY: The table is never written.
unsafe impl Sync for FileOperations {}

static CAPABILITY: FileOperations = FileOperations(bindings::file_operations {
    owner: this_module::<LocalModule>().as_ptr(),
    release: Some(release),
    ..pin_init::zeroed()
});

/// # Safety
///
/// Called by the kernel, once, when nobody has the file any more.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: `export` has put it there, and this is the only place that takes it.
    drop(unsafe { Arc::<Grant>::from_foreign((*file).private_data) });
    0
}

pub(crate) fn export(context: &Context, export: &mut Export) -> Outcome {
    check_unused(export.flags, export.reserved)?;
    range::rights(export.access).map_err(errno)?;
    let part = (export.offset, export.length);
    let grant = context.regions.lock().export(export.region, export.access, part)?;
    let private = Arc::new(grant, GFP_KERNEL_ACCOUNT)?.into_foreign();
    // SAFETY: The table lives as long as the module, which the file keeps.
    let fd = unsafe { dma_engine_get_fd(&CAPABILITY.0, private) };
    if fd < 0 {
        // SAFETY: No file was made, so nobody else has it.
        drop(unsafe { Arc::<Grant>::from_foreign(private) });
        return Err(Error::from_errno(fd));
    }
    export.fd = fd;
    Ok(None)
}

/// The descriptor could not be told.
pub(crate) fn undo_export(_context: &Context, export: &Export) {
    dma_engine_close_fd(export.fd);
}

pub(crate) fn import(context: &Context, import: &mut Argument) -> Outcome {
    check_unused(import.flags, 0)?;
    range::rights(import.access).map_err(errno)?;
    let fd = u32::try_from(import.fd).map_err(|_| EBADF)?;
    let file = LocalFile::fget(fd).map_err(|_| EBADF)?;
    let raw = file.as_ptr();
    // SAFETY: The file is referenced, and its table of operations does not change.
    if unsafe { (*raw).f_op } != &raw const CAPABILITY.0 {
        return Err(EINVAL);
    }
    // SAFETY: A file with this table has a grant, until it is released.
    let grant: ArcBorrow<'_, Grant> = unsafe { Arc::<Grant>::borrow((*raw).private_data) };
    let grant: Arc<Grant> = grant.into();
    let (length, properties) = (grant.length, grant.properties);
    let held = Held::Import(Import::new(grant, import.access)?);
    let inserted = context.regions.lock().insert(held, limits::max_regions());
    import.region = inserted.map_err(|(error, held)| {
        drop(held);
        error
    })?;
    import.length = length;
    import.properties = properties;
    Ok(None)
}

/// The id could not be told: nobody knows the import.
pub(crate) fn undo_import(context: &Context, import: &Argument) {
    let held = context.regions.lock().remove(import.region);
    drop(held);
}
