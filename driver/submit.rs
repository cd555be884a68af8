// SPDX-License-Identifier: GPL-2.0

//! `DMA_ENGINE_SUBMIT`: one operation without a ring.

use crate::{
    abi::{SubmissionEntry, Submit, descriptor::opcode},
    argument::Outcome,
    context::Context,
    copy, errno,
    parts::errno::EOPNOTSUPP,
};
use kernel::prelude::*;

pub(crate) fn run(context: &Context, submit: &mut Submit) -> Outcome {
    if submit.flags != 0 {
        return Err(errno(EOPNOTSUPP));
    }
    if submit.desc.opcode == opcode::FENCE {
        return Err(EINVAL);
    }
    let entry = SubmissionEntry { desc: submit.desc, ..SubmissionEntry::default() };
    let completion = copy::run(context, &entry);
    submit.result = completion.outcome().map_err(errno)?;
    submit.completion_flags = completion.flags;
    Ok(None)
}
