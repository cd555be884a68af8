// SPDX-License-Identifier: GPL-2.0

//! The table of commands.

use crate::{
    abi::{
        AttachEventfd, AttachProxy, Enter, Export, Import, Query, RegisterDmabuf, RegisterMemory,
        RingSetup, Submit, Unregister, ioctl::command,
    },
    argument,
    context::Context,
    enter, eventfd, export, memory,
    parts::arguments::low_byte,
    query, setup, submit,
};
use kernel::prelude::*;

type Run = fn(&Context, usize) -> Result;

/// One line for each command; the place is the low byte of its number.
static COMMANDS: [(u8, Run); 11] = [
    (command::QUERY, |c, a| argument::call::<Query>(c, a, query::run)),
    (command::RING_SETUP, |c, a| argument::call::<RingSetup>(c, a, setup::run)),
    (command::ENTER, |c, a| argument::call::<Enter>(c, a, enter::run)),
    (command::SUBMIT, |c, a| argument::call::<Submit>(c, a, submit::run)),
    (command::REGISTER_MEMORY, |c, a| {
        argument::call_or_undo::<RegisterMemory>(c, a, memory::register, memory::undo)
    }),
    (command::REGISTER_DMABUF, |c, a| argument::call::<RegisterDmabuf>(c, a, unsupported)),
    (command::EXPORT, |c, a| {
        argument::call_or_undo::<Export>(c, a, export::export, export::undo_export)
    }),
    (command::IMPORT, |c, a| {
        argument::call_or_undo::<Import>(c, a, export::import, export::undo_import)
    }),
    (command::UNREGISTER, |c, a| argument::call::<Unregister>(c, a, memory::unregister)),
    (command::ATTACH_EVENTFD, |c, a| argument::call::<AttachEventfd>(c, a, eventfd::attach)),
    (command::ATTACH_PROXY, |c, a| argument::call::<AttachProxy>(c, a, unsupported)),
];

/// Run one command.
pub(crate) fn run(context: &Context, number: u32, argument: usize) -> Result {
    let byte = low_byte(number).ok_or(ENOTTY)?;
    let (_, run) = COMMANDS.iter().find(|(known, _)| *known == byte).ok_or(ENOTTY)?;
    context.check_caller(byte == command::QUERY)?;
    run(context, argument)
}

/// A command whose feature bit is not set.
fn unsupported<T>(_context: &Context, _argument: &mut T) -> argument::Outcome {
    Err(crate::errno(crate::parts::errno::EOPNOTSUPP))
}
