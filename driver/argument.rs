// SPDX-License-Identifier: GPL-2.0

//! Copy the argument of a command in and out again.

use crate::{
    abi::{
        AttachEventfd, AttachProxy, Enter, Export, Import, Query, RegisterDmabuf, RegisterMemory,
        RingSetup, Submit, Unregister, ioctl::command,
    },
    context::Context,
    errno,
    parts::{
        arguments::{Extent, FIRST_SIZES, extent},
        errno::EOPNOTSUPP,
    },
};
use kernel::{
    prelude::*,
    transmute::{AsBytes, FromBytes},
    uaccess::{UserPtr, UserSlice},
};

/// How a command ended. `Ok(Some(error))`: with an error, and the argument is written back.
pub(crate) type Outcome = Result<Option<Error>>;

/// The struct of a command.
pub(crate) trait Argument: FromBytes + AsBytes + Default {
    /// Its command.
    const COMMAND: u8;
}

macro_rules! arguments {
    ($($type:ty: $command:ident,)*) => { $(
        // SAFETY: Integers only, so that every pattern of bits is a value.
        unsafe impl FromBytes for $type {}
        // SAFETY: `repr(C)` with its padding spelled out: the sizes that the ABI asserts are the
        // sums of the sizes of the fields.
        unsafe impl AsBytes for $type {}
        impl Argument for $type {
            const COMMAND: u8 = command::$command;
        }
    )* };
}

arguments! {
    Query: QUERY,
    RingSetup: RING_SETUP,
    Enter: ENTER,
    Submit: SUBMIT,
    RegisterMemory: REGISTER_MEMORY,
    RegisterDmabuf: REGISTER_DMABUF,
    Export: EXPORT,
    Import: IMPORT,
    Unregister: UNREGISTER,
    AttachEventfd: ATTACH_EVENTFD,
    AttachProxy: ATTACH_PROXY,
}

/// Refuse bits of `flags` that this version does not know, and reserved fields that are used.
pub(crate) fn check_unused(unknown_flags: u32, reserved: u32) -> Result {
    if unknown_flags != 0 {
        return Err(errno(EOPNOTSUPP));
    }
    if reserved != 0 { Err(EINVAL) } else { Ok(()) }
}

/// Copy the argument at `address` in, run the command, and copy it out again.
pub(crate) fn call<T: Argument>(
    context: &Context,
    address: usize,
    run: fn(&Context, &mut T) -> Outcome,
) -> Result {
    call_or_undo(context, address, run, |_, _| ())
}

/// The same; where the argument cannot be written back, undo what the command made.
pub(crate) fn call_or_undo<T: Argument>(
    context: &Context,
    address: usize,
    run: fn(&Context, &mut T) -> Outcome,
    undo: fn(&Context, &T),
) -> Result {
    let (mut argument, extent) = load::<T>(address)?;
    let error = run(context, &mut argument)?;
    if let Err(unwritten) = store(address, &argument, extent) {
        undo(context, &argument);
        return Err(unwritten);
    }
    error.map_or(Ok(()), Err)
}

fn slice(address: usize, bytes: u32) -> UserSlice {
    UserSlice::new(UserPtr::from_addr(address), bytes as usize)
}

fn load<T: Argument>(address: usize) -> Result<(T, Extent)> {
    let size = slice(address, 4).reader().read::<u32>()?;
    let first = FIRST_SIZES.iter().find(|(known, _)| *known == T::COMMAND).ok_or(ENOTTY)?.1;
    let extent = extent(size, first, size_of::<T>() as u32).map_err(errno)?;
    let mut argument = T::default();
    let mut reader = slice(address, size).reader();
    let bytes = argument_bytes(&mut argument);
    let copied = bytes.get_mut(..extent.copied as usize).ok_or(EINVAL)?;
    reader.read_slice(copied)?;
    let mut chunk = [0_u8; 64];
    while !reader.is_empty() {
        let part = chunk.get_mut(..reader.len().min(64)).ok_or(EINVAL)?;
        reader.read_slice(part)?;
        if part.iter().any(|byte| *byte != 0) {
            return Err(E2BIG);
        }
    }
    // The size was read twice: what it is the second time is not looked at.
    if let Some(field) = argument_bytes(&mut argument).first_chunk_mut::<4>() {
        *field = size.to_ne_bytes();
    }
    Ok((argument, extent))
}

fn store<T: Argument>(address: usize, argument: &T, extent: Extent) -> Result {
    let bytes = argument.as_bytes().get(..extent.copied as usize).ok_or(EINVAL)?;
    slice(address, extent.copied).writer().write_slice(bytes)
}

fn argument_bytes<T: Argument>(argument: &mut T) -> &mut [u8] {
    // SAFETY: `T` has no padding (`AsBytes`), and every pattern of bits is a value (`FromBytes`).
    unsafe {
        core::slice::from_raw_parts_mut(core::ptr::from_mut(argument).cast::<u8>(), size_of::<T>())
    }
}
