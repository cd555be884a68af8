//! From a store to a mesh.

use crate::auth::Nonce;
use crate::host::Host;
use crate::info::{Info, nodes};
use crate::link::{Listener, Remote, Session, TcpListeners, link_all};
use crate::rendezvous::{Gathered, Rendezvous};
use crate::{BootstrapError, JoinConfig, Mesh, Store};

/// Find and authenticate the other ranks of a communicator.
///
/// All ranks call it; it returns when every rank has published itself and this rank has a link to
/// every other: a Unix socket within the node, TCP to other nodes. A rank that fails tells the others through the store, so that all end at once.
///
/// # Errors
///
/// - [`BootstrapError::Argument`]: a field of `config` breaks its rule.
/// - [`BootstrapError::DuplicateRank`]: another process holds this rank; the other ranks get
///   [`BootstrapError::Refused`] if they still wait.
/// - [`BootstrapError::Refused`]: another world size, version, secret or user, or a rank gave up.
/// - [`BootstrapError::Timeout`]: names the ranks that did not come.
/// - [`BootstrapError::PeerLost`]: a rank ended after it published itself.
/// - [`BootstrapError::Unreachable`]: no address of a rank of another node leads to it.
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
        everywhere: config.network.everywhere,
    };
    let Gathered { secret, infos } = rendezvous.gather(&own, secret)?;
    let nodes = nodes(&infos);
    let session = Session { name: config.name.clone(), rank: config.rank, secret, infos };
    let everywhere = session.infos.iter().any(|signed| signed.info.everywhere);
    let (tcp, addresses);
    let mut remote = None;
    // Nobody listens on the network without need.
    if (everywhere || nodes.iter().any(|node| *node != 0)) && config.ranks > 1 {
        tcp = TcpListeners::bind(&config.network.addresses()?)?;
        addresses = rendezvous.reach(&tcp.addresses()?, &session.secret)?;
        remote = Some(Remote { listeners: &tcp, addresses: &addresses, everywhere });
    }
    let (links, warnings) = link_all(&session, (&listener, remote), &nodes, rendezvous, deadline)?;
    let notes = session.infos.into_iter().map(|signed| signed.info.note).collect();
    Ok(Mesh::new(session.name, config.rank, nodes, notes, links, warnings))
}
