//! Where ranks meet: stores from a text.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use stepccl::{Config, FileStore, Secret, Store, TcpStore, TcpStoreLimits, TcpStoreServer};

use crate::guard::Failure;

/// Servers of this process, by address: communicators that name the same one share it.
static SERVERS: Mutex<Option<HashMap<String, Weak<TcpStoreServer>>>> = Mutex::new(None);

/// A store, and the server that must live as long as it is used.
pub(crate) struct Place {
    pub store: Box<dyn Store>,
    pub server: Option<Arc<TcpStoreServer>>,
}

/// Open the store that `text` names; rank 0 serves a TCP store.
pub(crate) fn open(text: &str, rank: u32, config: &Config) -> Result<Place, Failure> {
    match text.split_once(':') {
        Some(("file", path)) if !path.is_empty() => {
            Ok(Place { store: Box::new(FileStore::open(Path::new(path))?), server: None })
        }
        Some(("tcp", address)) if address.contains(':') => tcp(address, rank, config),
        _ => Err(Failure::argument(format!(
            "store = {text:?}: must be file:DIRECTORY or tcp:HOST:PORT"
        ))),
    }
}

fn tcp(address: &str, rank: u32, config: &Config) -> Result<Place, Failure> {
    let secret = || {
        let made = config.secret.as_deref().map(Secret::from_text);
        made.transpose().map_err(|e| Failure::argument(format!("secret: {e}")))
    };
    let server = if rank == 0 { Some(serve(address, secret()?)?) } else { None };
    let store = TcpStore::connect(address, secret()?, config.start_timeout)?;
    Ok(Place { store: Box::new(store), server })
}

fn serve(address: &str, secret: Option<Secret>) -> Result<Arc<TcpStoreServer>, Failure> {
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = servers.get_or_insert_default();
    servers.retain(|_, server| server.strong_count() > 0);
    if let Some(server) = servers.get(address).and_then(Weak::upgrade) {
        return Ok(server);
    }
    let server = Arc::new(TcpStoreServer::bind(address, secret, TcpStoreLimits::default())?);
    servers.insert(address.to_owned(), Arc::downgrade(&server));
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_names_no_store_is_refused() {
        for text in ["", "file", "file:", "tcp:host", "http://x:1"] {
            let failure = open(text, 0, &Config::default()).err().unwrap();
            assert!(failure.text.contains("must be file:"), "{}", failure.text);
        }
    }
}
