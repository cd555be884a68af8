//! Sockets: whether loopback answers, and which interfaces lead to other nodes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use super::finding::Finding;
use super::scene::Scene;
use crate::outcome::printable;

/// Loopback answers in microseconds or not at all.
const LIMIT: Duration = Duration::from_secs(2);
/// Most addresses that are told.
const MOST: usize = 8;

pub(super) fn check(_scene: &Scene) -> Finding {
    judge(loopback(), &outward())
}

/// Send a byte to ourselves.
fn loopback() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address: SocketAddr = listener.local_addr()?;
    let mut client = TcpStream::connect_timeout(&address, LIMIT)?;
    // The connection stands: this does not wait for anybody else's.
    let (mut server, _) = listener.accept()?;
    server.set_read_timeout(Some(LIMIT))?;
    client.write_all(&[42])?;
    let mut byte = [0];
    server.read_exact(&mut byte)
}

/// Interfaces that are up and lead elsewhere, with an address.
fn outward() -> Vec<String> {
    let Ok(list) = getifaddrs() else { return Vec::new() };
    let mut found: Vec<String> = list
        .filter(|i| i.flags.contains(InterfaceFlags::IFF_UP))
        .filter(|i| !i.flags.contains(InterfaceFlags::IFF_LOOPBACK))
        .filter_map(|i| {
            let address = i.address?;
            let four = address.as_sockaddr_in().map(|a| a.ip().to_string());
            let six = address.as_sockaddr_in6().filter(|a| !a.ip().is_unicast_link_local());
            let shown = four.or_else(|| six.map(|a| a.ip().to_string()))?;
            Some(printable(&format!("{} {shown}", i.interface_name)))
        })
        .collect();
    found.truncate(MOST);
    found
}

fn judge(loopback: io::Result<()>, outward: &[String]) -> Finding {
    if let Err(error) = loopback {
        return Finding::fail(
            format!("loopback does not answer: {error}"),
            "sudo ip link set dev lo up",
        );
    }
    if outward.is_empty() {
        return Finding::ok("loopback answers; no interface leads to other nodes");
    }
    Finding::ok(format!("loopback answers; to other nodes: {}", outward.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn loopback_must_answer() {
        let silent = judge(Err(io::ErrorKind::NetworkUnreachable.into()), &[]);
        assert_eq!(silent.verdict, Verdict::Fail);
        assert!(judge(Ok(()), &["eth0 10.0.0.1".to_owned()]).fact.ends_with("eth0 10.0.0.1"));
        assert_eq!(judge(Ok(()), &[]).verdict, Verdict::Ok);
    }
}
