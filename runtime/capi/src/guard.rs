//! What stands between C and the library: errors and panics become codes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use stepccl::{Error, StoreError};

use crate::code::*;
use crate::text::set_last_error;

/// A code with its text.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: ResultCode,
    pub text: String,
}

impl Failure {
    pub fn argument(text: impl Into<String>) -> Self {
        Self { code: STEPCCL_INVALID_ARGUMENT, text: text.into() }
    }

    pub fn usage(text: impl Into<String>) -> Self {
        Self { code: STEPCCL_INVALID_USAGE, text: text.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { code: code_of(&error), text: error.to_string() }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { code: STEPCCL_START_FAILED, text: error.to_string() }
    }
}

/// Run the body of a function of the interface.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> ResultCode {
    // After a panic the library's locks still hold what they held, and C is told not to go on.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return STEPCCL_SUCCESS,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = format!("fault of the library, please report it: {}", said(&*panic));
            // A payload may panic when it is dropped; it is small, and this happens once.
            std::mem::forget(panic);
            Failure { code: STEPCCL_INTERNAL_ERROR, text }
        }
    };
    set_last_error(&failure.text);
    failure.code
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;
    use crate::text::stepccl_last_error;

    #[test]
    fn a_panic_is_a_code_with_its_text() {
        let code = guard(|| {
            let empty: &[u8] = &[];
            let at = std::hint::black_box(3);
            assert_eq!(empty[at], 0);
            Ok(())
        });
        assert_eq!(code, STEPCCL_INTERNAL_ERROR);
        // SAFETY:
        // - The text is valid until this thread's next call.
        let text = unsafe { CStr::from_ptr(stepccl_last_error()) }.to_str().unwrap();
        assert!(text.contains("out of bounds"), "{text}");
    }
}
