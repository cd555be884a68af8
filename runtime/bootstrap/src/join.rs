//! From a store to a mesh.

use crate::auth::Nonce;
use crate::host::Host;
use crate::info::{Info, nodes};
use crate::link::{Listener, Session, link_all};
use crate::rendezvous::{Gathered, Rendezvous};
use crate::{BootstrapError, JoinConfig, Mesh, Store};

/// Find and authenticate the other ranks of a communicator.
///
/// All ranks call it; it returns when every rank has published itself and this rank has a link to
/// every other rank of its host. A rank on another host has no link: the caller decides what that
/// means. A rank that fails tells the others through the store, so that all end at once.
///
/// # Errors
///
/// - [`BootstrapError::Argument`]: a field of `config` breaks its rule.
/// - [`BootstrapError::DuplicateRank`]: another process holds this rank; the other ranks get
///   [`BootstrapError::Refused`] if they still wait.
/// - [`BootstrapError::Refused`]: another world size, version, secret or user, or a rank gave up.
/// - [`BootstrapError::Timeout`]: names the ranks that did not come.
/// - [`BootstrapError::PeerLost`]: a rank ended after it published itself.
/// - [`BootstrapError::BadInfo`], [`BootstrapError::BadEntry`], [`BootstrapError::Protocol`]:
///   something that is not this protocol wrote to the store or a socket.
/// - [`BootstrapError::Store`], [`BootstrapError::System`], [`BootstrapError::Secret`].
#[expect(clippy::needless_pass_by_value, reason = "the secret in it is wiped when join returns")]
pub fn join(store: &dyn Store, config: JoinConfig) -> Result<Mesh, BootstrapError> {
    let deadline = config.check()?;
    let rendezvous = Rendezvous::new(store, &config, deadline);
    attempt(&rendezvous, &config, deadline).inspect_err(|error| rendezvous.refuse(error))
}

fn attempt(
    rendezvous: &Rendezvous<'_>,
    config: &JoinConfig,
    deadline: std::time::Instant,
) -> Result<Mesh, BootstrapError> {
    let host = Host::read()?;
    rendezvous.claim(&host)?;
    let secret = rendezvous.secret()?;
    // Listening before it is published: from then on, nobody listening means the rank ended.
    let listener = Listener::bind()?;
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|e| BootstrapError::system("getrandom", e))?;
    let own = Info {
        rank: config.rank,
        ranks: config.ranks,
        pid: host.pid,
        uid: host.uid,
        host: host.id,
        socket: *listener.id(),
        nonce,
        node: host.node,
        note: config.note.clone(),
    };
    let Gathered { secret, infos } = rendezvous.gather(&own, secret)?;
    let nodes = nodes(&infos);
    let session = Session { name: config.name.clone(), rank: config.rank, secret, infos };
    let (links, warnings) = link_all(&session, &listener, &nodes, rendezvous, deadline)?;
    let notes = session.infos.into_iter().map(|signed| signed.info.note).collect();
    Ok(Mesh::new(session.name, config.rank, nodes, notes, links, warnings))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{MemoryStore, Secret};

    fn config(rank: u32) -> JoinConfig {
        JoinConfig {
            name: "w".to_owned(),
            rank,
            ranks: 3,
            secret: Some(Secret::from_bytes([6; 32])),
            timeout: Duration::from_secs(20),
            note: vec![rank as u8],
        }
    }

    /// What a rank of another host does; its socket cannot be reached from here.
    fn join_far_away(store: &dyn Store, rank: u32) {
        let config = config(rank);
        let rendezvous = Rendezvous::new(store, &config, Instant::now() + Duration::from_secs(20));
        let host = Host { id: [1; 16], node: "far".to_owned(), pid: 1, uid: 4242 };
        rendezvous.claim(&host).unwrap();
        let info = Info {
            rank,
            ranks: 3,
            pid: host.pid,
            uid: host.uid,
            host: host.id,
            socket: [0; 16],
            nonce: [0; 32],
            node: host.node,
            note: config.note.clone(),
        };
        rendezvous.gather(&info, rendezvous.secret().unwrap()).unwrap();
    }

    #[test]
    fn ranks_of_another_host_are_known_and_have_no_link() {
        let store = MemoryStore::new();
        let meshes: Vec<Mesh> = std::thread::scope(|scope| {
            scope.spawn(|| join_far_away(&store, 1));
            let near = [0, 2].map(|rank| {
                scope.spawn({
                    let store = &store;
                    move || join(store, config(rank))
                })
            });
            near.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
        });
        for (mesh, peer) in meshes.iter().zip([2, 0]) {
            assert_eq!(mesh.nodes, [0, 1, 0]);
            assert_eq!(mesh.notes, [[0], [1], [2]]);
            let linked: Vec<u32> = mesh.links.iter().flatten().map(|link| link.rank).collect();
            assert_eq!(linked, [peer]);
        }
    }
}
