//! Result codes.

use std::ffi::{CStr, c_char, c_int};

use stepccl::{BootstrapError, Error};

/// How a call ended: one of `STEPCCL_SUCCESS`, `STEPCCL_INVALID_ARGUMENT`, and so on. Later
/// releases may add codes.
pub type ResultCode = c_int;

/// It went well.
pub const STEPCCL_SUCCESS: ResultCode = 0;
/// A value breaks a rule. Nothing was started; the communicator works on.
pub const STEPCCL_INVALID_ARGUMENT: ResultCode = 1;
/// The call is not possible at this point. Nothing was started; the communicator works on.
pub const STEPCCL_INVALID_USAGE: ResultCode = 2;
/// What was asked for does not exist here. Nothing was started; the communicator works on.
pub const STEPCCL_NOT_SUPPORTED: ResultCode = 3;
/// Time was over: of a wait, and the operation goes on, or of the operation or of start-up.
pub const STEPCCL_TIMEOUT: ResultCode = 4;
/// Another rank is gone. The communicator is broken.
pub const STEPCCL_PEER_LOST: ResultCode = 5;
/// Ranks called different operations. The communicator is broken.
pub const STEPCCL_MISMATCH: ResultCode = 6;
/// The communicator was aborted.
pub const STEPCCL_ABORTED: ResultCode = 7;
/// An earlier error broke the communicator; the text says which.
pub const STEPCCL_BROKEN: ResultCode = 8;
/// Ranks refused one another at start-up: other settings, or a rank that is taken.
pub const STEPCCL_REFUSED: ResultCode = 9;
/// Ranks could not meet.
pub const STEPCCL_START_FAILED: ResultCode = 10;
/// The operating system refused something.
pub const STEPCCL_SYSTEM_ERROR: ResultCode = 11;
/// The engine that moves the bytes failed.
pub const STEPCCL_ENGINE_ERROR: ResultCode = 12;
/// A fault of the library. The communicator should not be used any more.
pub const STEPCCL_INTERNAL_ERROR: ResultCode = 13;

/// The code of an error.
pub(crate) const fn code_of(error: &Error) -> ResultCode {
    match error {
        Error::InvalidArgument { .. } => STEPCCL_INVALID_ARGUMENT,
        Error::NotSupported { .. } | Error::Plan(_) => STEPCCL_NOT_SUPPORTED,
        Error::Timeout { .. } => STEPCCL_TIMEOUT,
        Error::PeerLost { .. } => STEPCCL_PEER_LOST,
        Error::CallMismatch { .. } | Error::MessageMismatch { .. } => STEPCCL_MISMATCH,
        Error::Aborted { .. } => STEPCCL_ABORTED,
        Error::Broken { .. } => STEPCCL_BROKEN,
        Error::Disagreement { .. } => STEPCCL_REFUSED,
        Error::Bootstrap(error) => code_of_start(error),
        Error::Engine { .. } => STEPCCL_ENGINE_ERROR,
        Error::System { .. } => STEPCCL_SYSTEM_ERROR,
        _ => STEPCCL_INTERNAL_ERROR,
    }
}

const fn code_of_start(error: &BootstrapError) -> ResultCode {
    match error {
        BootstrapError::Argument { .. } => STEPCCL_INVALID_ARGUMENT,
        BootstrapError::Timeout { .. } => STEPCCL_TIMEOUT,
        BootstrapError::PeerLost { .. } => STEPCCL_PEER_LOST,
        BootstrapError::Refused { .. } | BootstrapError::DuplicateRank { .. } => STEPCCL_REFUSED,
        _ => STEPCCL_START_FAILED,
    }
}

/// What a code means in general; `stepccl_last_error` says what happened. Never null; the text
/// lives as long as the program.
///
/// Thread safety: any thread, any time.
#[unsafe(no_mangle)]
pub extern "C" fn stepccl_result_string(code: ResultCode) -> *const c_char {
    describe(code).as_ptr()
}

const fn describe(code: ResultCode) -> &'static CStr {
    match code {
        STEPCCL_SUCCESS => c"success",
        STEPCCL_INVALID_ARGUMENT => c"invalid argument",
        STEPCCL_INVALID_USAGE => c"the call is not possible at this point",
        STEPCCL_NOT_SUPPORTED => c"not supported",
        STEPCCL_TIMEOUT => c"timed out",
        STEPCCL_PEER_LOST => c"another rank is gone",
        STEPCCL_MISMATCH => c"ranks called different operations",
        STEPCCL_ABORTED => c"aborted",
        STEPCCL_BROKEN => c"broken by an earlier error",
        STEPCCL_REFUSED => c"ranks refused one another",
        STEPCCL_START_FAILED => c"ranks could not meet",
        STEPCCL_SYSTEM_ERROR => c"the operating system refused",
        STEPCCL_ENGINE_ERROR => c"the engine failed",
        STEPCCL_INTERNAL_ERROR => c"fault of the library",
        _ => c"unknown code",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_code_has_its_own_text() {
        let texts: HashSet<_> = (-1..=STEPCCL_INTERNAL_ERROR).map(describe).collect();
        assert_eq!(texts.len(), 15);
        assert_eq!(describe(99), describe(-1));
    }
}
