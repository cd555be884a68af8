//! Whether processes of this machine may read one another's memory, which saves a copy of long
//! messages. A child tries it on this process, as one rank does on another.

use std::error::Error;
use std::io::IoSliceMut;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::finding::Finding;
use super::scene::Scene;

/// Set for the child: process and address to read at.
const PEEK: &str = "STEPCCL_DOCTOR_PEEK";
/// Exit code of a child that read something else.
const OTHER: u8 = 254;
/// Exit code of a child that could not try.
const NOT_TRIED: u8 = 255;
/// Time the child may take.
const LIMIT: Duration = Duration::from_secs(3);
/// Bytes that the child reads.
const BYTES: usize = 64;

/// What the child found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tried {
    Read,
    Refused(Errno),
    /// The child did not say.
    Unknown(String),
}

pub(super) fn check(scene: &Scene) -> Finding {
    let scope = scene.proc("sys/kernel/yama/ptrace_scope").and_then(|text| text.parse().ok());
    judge(scope, &attempt())
}

fn judge(scope: Option<u8>, tried: &Tried) -> Finding {
    let scope_text = scope.map_or("no ptrace_scope".to_owned(), |s| format!("ptrace_scope {s}"));
    match tried {
        Tried::Read => Finding::ok(format!(
            "a process can read another's memory (process_vm_readv, {scope_text})"
        )),
        Tried::Refused(Errno::ENOSYS) => Finding::warn(
            "this kernel has no process_vm_readv: long messages are copied twice",
            "zgrep CONFIG_CROSS_MEMORY_ATTACH /proc/config.gz  # needs a kernel that has it",
        ),
        Tried::Refused(errno) => Finding::warn(
            format!(
                "processes cannot read one another's memory ({errno}, {scope_text}): long messages are copied twice"
            ),
            if scope.is_some_and(|scope| scope > 0) {
                "sudo sysctl kernel.yama.ptrace_scope=0"
            } else {
                "docker run --cap-add=SYS_PTRACE ...  # or a seccomp profile that allows process_vm_readv"
            },
        ),
        Tried::Unknown(what) => Finding::warn(
            format!("could not be tried: {what} ({scope_text})"),
            "stepccl doctor  # try again when the machine is less busy",
        ),
    }
}

/// Start a child that reads memory of this process.
fn attempt() -> Tried {
    let pattern: Vec<u8> = std::hint::black_box((0..BYTES).map(expected).collect());
    let unknown = |what: std::io::Error| Tried::Unknown(what.to_string());
    // The command as it was started, not whatever has its name now.
    let mut command = Command::new("/proc/self/exe");
    command.arg("doctor").env(PEEK, format!("{}:{}", std::process::id(), pattern.as_ptr().addr()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return unknown(error),
    };
    let until = Instant::now() + LIMIT;
    let code = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.code(),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => {
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Tried::Unknown(format!("the child did not end within {LIMIT:?}"));
            }
            Err(error) => return unknown(error),
        }
    };
    // The compiler does not know of the child, which has read it.
    std::hint::black_box(&pattern);
    match code.map(u8::try_from) {
        Some(Ok(0)) => Tried::Read,
        Some(Ok(OTHER)) => Tried::Unknown("the child read other bytes".to_owned()),
        Some(Ok(NOT_TRIED)) | Some(Err(_)) | None => Tried::Unknown("the child failed".to_owned()),
        Some(Ok(code)) => Tried::Refused(Errno::from_raw(i32::from(code))),
    }
}

/// Be the child, where this process is one: the exit code says what came of it.
///
/// # Errors
///
/// Where the variable was not set by this command.
pub(super) fn child() -> Result<Option<ExitCode>, Box<dyn Error>> {
    let Some(text) = std::env::var_os(PEEK) else { return Ok(None) };
    let whole = text.to_string_lossy();
    let parsed = whole.split_once(':').and_then(|(pid, address)| {
        Some((pid.parse::<i32>().ok().filter(|pid| *pid > 0)?, address.parse::<usize>().ok()?))
    });
    let (pid, base) = parsed.ok_or_else(|| {
        format!("{PEEK} = {}: is for this command's own use; unset it", whole.escape_debug())
    })?;
    let mut bytes = [0; BYTES];
    let remote = [RemoteIoVec { base, len: BYTES }];
    let read = process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(&mut bytes)], &remote);
    Ok(Some(ExitCode::from(match read {
        Ok(BYTES) if bytes.iter().enumerate().all(|(i, b)| *b == expected(i)) => 0,
        Ok(_) => OTHER,
        Err(errno) => u8::try_from(errno as i32).unwrap_or(NOT_TRIED),
    })))
}

/// Byte `i` of what is read: not what fresh memory holds.
const fn expected(i: usize) -> u8 {
    (i as u8).wrapping_mul(37) ^ 0x5a
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_refusal_has_the_fix_that_fits() {
        let refused = Tried::Refused(Errno::EPERM);
        let yama = judge(Some(1), &refused);
        assert_eq!(yama.verdict, Verdict::Warn);
        assert!(yama.fix.unwrap().contains("ptrace_scope=0"));
        for scope in [None, Some(0)] {
            assert!(judge(scope, &refused).fix.unwrap().contains("SYS_PTRACE"));
        }
        assert!(judge(None, &Tried::Refused(Errno::ENOSYS)).fact.contains("kernel"));
        assert_eq!(judge(Some(0), &Tried::Read).verdict, Verdict::Ok);
        assert_eq!(judge(None, &Tried::Unknown("x".into())).verdict, Verdict::Warn);
    }
}
