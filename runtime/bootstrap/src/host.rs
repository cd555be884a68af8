//! Which host a rank is on.

use std::os::unix::fs::MetadataExt;

use crate::BootstrapError;
use crate::auth::digest;
use crate::wire::printable;

/// Ranks with the same id reach one another by abstract Unix sockets.
pub(crate) type HostId = [u8; 16];

/// What a rank knows of its host and of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Boot of the kernel and network namespace: abstract sockets are per network namespace, so
    /// two containers of one machine count as two hosts unless they share it.
    pub(crate) id: HostId,
    /// Name for messages.
    pub(crate) node: String,
    /// Process id, as this process sees it.
    pub(crate) pid: u32,
    /// Effective user id.
    pub(crate) uid: u32,
}

impl Host {
    /// Ask the system.
    pub(crate) fn read() -> Result<Self, BootstrapError> {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id")
            .map_err(|e| BootstrapError::system("read /proc/sys/kernel/random/boot_id", e))?;
        // Of this thread and not of the process: its sockets are made there.
        let network = std::fs::metadata("/proc/thread-self/ns/net")
            .map_err(|e| BootstrapError::system("stat /proc/thread-self/ns/net", e))?;
        let mut bytes = boot.trim_ascii().to_vec();
        bytes.extend_from_slice(&network.dev().to_le_bytes());
        bytes.extend_from_slice(&network.ino().to_le_bytes());
        let mut id = HostId::default();
        id.copy_from_slice(&digest(&bytes)[..16]);
        let node = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
        Ok(Self {
            id,
            node: printable(node.trim_ascii(), 64),
            pid: std::process::id(),
            uid: nix::unistd::geteuid().as_raw(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_has_one_host() {
        let host = Host::read().unwrap();
        assert_eq!(host, Host::read().unwrap());
        assert_eq!(host.pid, std::process::id());
        assert_ne!(host.id, HostId::default());
    }
}
