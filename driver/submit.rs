// SPDX-License-Identifier: GPL-2.0

//! `DMA_ENGINE_SUBMIT`: one operation without a ring.

use crate::{
    abi::{SubmissionEntry, Submit, descriptor::opcode},
    argument::{Outcome, check_unused},
    context::Context,
    copy, errno,
};
use kernel::prelude::*;

pub(crate) fn run(context: &Context, submit: &mut Submit) -> Outcome {
    check_unused(submit.flags, 0)?;
    if submit.desc.opcode == opcode::FENCE {
        return Err(EINVAL);
    }
    let entry = SubmissionEntry { desc: submit.desc, ..SubmissionEntry::default() };
    let completion = copy::run(context, &entry);
    submit.result = completion.outcome().map_err(errno)?;
    submit.completion_flags = completion.flags;
    Ok(None)
}
