//! The processes of a command's ranks.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::Signal;

use super::{LaunchError, PARENT, RANK, STORE};

/// Running ranks. Dropped, it ends those it started, and only those.
#[derive(Debug, Default)]
pub(super) struct World {
    children: Vec<(u32, Child)>,
}

/// How a rank ended.
#[derive(Debug)]
pub(super) struct End {
    pub rank: u32,
    pub pid: u32,
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl World {
    /// Start `rank`.
    pub fn start(&mut self, rank: u32, store: &Path) -> Result<(), LaunchError> {
        let child = std::env::current_exe().and_then(|program| {
            Command::new(program)
                .args(std::env::args_os().skip(1))
                .env(RANK, rank.to_string())
                .env(STORE, store)
                .env(PARENT, std::process::id().to_string())
                .stdin(Stdio::null())
                .spawn()
        });
        let child = child.map_err(|source| LaunchError::Start { rank, source })?;
        self.children.push((rank, child));
        Ok(())
    }

    /// Ranks that have ended since the last call.
    pub fn reap(&mut self) -> Result<Vec<End>, LaunchError> {
        let mut ends = Vec::new();
        for (rank, child) in &mut self.children {
            let status =
                child.try_wait().map_err(|source| LaunchError::Wait { rank: *rank, source })?;
            if let Some(status) = status {
                ends.push(End::new(*rank, child.id(), status));
            }
        }
        self.children.retain(|(rank, _)| !ends.iter().any(|end| end.rank == *rank));
        Ok(ends)
    }

    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Ranks that run, in words.
    pub fn running(&self) -> stepccl::Ranks {
        stepccl::Ranks(self.children.iter().map(|(rank, _)| *rank).collect())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (_, child) in &mut self.children {
            // It may have ended by itself in between.
            let _ = child.kill();
        }
        for (_, child) in &mut self.children {
            let _ = child.wait();
        }
    }
}

impl End {
    fn new(rank: u32, pid: u32, status: ExitStatus) -> Self {
        Self { rank, pid, code: status.code(), signal: status.signal() }
    }

    pub fn failed(&self) -> bool {
        self.code != Some(0)
    }

    /// What the rank could not say itself: one that ends with 1 or 2 has told its reason.
    pub fn words(&self) -> Option<String> {
        let who = format!("rank {} (pid {})", self.rank, self.pid);
        match (self.code, self.signal) {
            (Some(0..=2), _) => None,
            (Some(code), _) => Some(format!("{who} ended with exit code {code}")),
            (None, Some(number)) => {
                let name = Signal::try_from(number)
                    .map_or_else(|_| format!("signal {number}"), |signal| signal.to_string());
                let hint = if number == Signal::SIGKILL as i32 {
                    "; the kernel does so when memory runs out: look at dmesg"
                } else {
                    ""
                };
                Some(format!("{who} was ended by {name}{hint}"))
            }
            (None, None) => Some(format!("{who} ended and the system does not say how")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(code: Option<i32>, signal: Option<i32>) -> Option<String> {
        End { rank: 3, pid: 77, code, signal }.words()
    }

    #[test]
    fn what_a_rank_has_said_is_not_said_again() {
        assert_eq!(words(Some(1), None), None);
        assert_eq!(words(Some(101), None).unwrap(), "rank 3 (pid 77) ended with exit code 101");
        assert!(words(None, Some(11)).unwrap().ends_with("was ended by SIGSEGV"));
        assert!(words(None, Some(9)).unwrap().contains("SIGKILL; the kernel"));
        assert!(words(None, Some(64)).unwrap().contains("signal 64"));
    }
}
