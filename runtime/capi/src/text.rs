//! Texts that C reads: the last error and the version.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Remember what went wrong on this thread.
pub(crate) fn set_last_error(text: &str) {
    let text: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    // While a thread ends, nobody can ask any more.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// What the last failed call of this thread said: who, what, the rule and the next step. Never
/// null; empty where no call has failed. The text is valid until this thread's next call that
/// fails, and not longer than the thread.
///
/// Thread safety: any thread, any time; each thread has its own text.
#[unsafe(no_mangle)]
pub extern "C" fn stepccl_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"unknown",
    };

/// Version of the library, such as "0.1.0". Never null; the text lives as long as the program.
///
/// Thread safety: any thread, any time.
#[unsafe(no_mangle)]
pub extern "C" fn stepccl_version() -> *const c_char {
    VERSION.as_ptr()
}
