//! What ranks say to one another through the store, before they have a socket.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::host::Host;
use crate::info::{
    Info, InfoError, OLDEST, Opening, SignedInfo, VERSION, encode_table, parse_table,
};
use crate::keys::Keys;
use crate::reach;
use crate::wire::printable;
use crate::{BootstrapError, JoinConfig, Secret, Store, StoreError};

/// Longest reason taken from the store, in bytes.
const MAX_REASON_BYTES: usize = 1024;

/// One rank's view of the store.
pub(crate) struct Rendezvous<'a> {
    store: &'a dyn Store,
    config: &'a JoinConfig,
    keys: Keys,
    started: Instant,
    deadline: Instant,
}

/// What the ranks know of one another after the store.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) secret: Secret,
    /// One entry a rank.
    pub(crate) infos: Vec<SignedInfo>,
}

impl<'a> Rendezvous<'a> {
    pub(crate) fn new(store: &'a dyn Store, config: &'a JoinConfig, deadline: Instant) -> Self {
        Self { store, config, keys: Keys::new(&config.name), started: Instant::now(), deadline }
    }

    /// Take the rank and agree on world size, version and who brings the secret.
    pub(crate) fn claim(&self, host: &Host) -> Result<(), BootstrapError> {
        let config = self.config;
        self.check_refused()?;
        if self.op(self.store.add(&self.keys.claim(config.rank), 1))? != 1 {
            let here = self.op(self.store.try_get(&self.keys.here(config.rank)))?;
            return Err(BootstrapError::DuplicateRank {
                name: config.name.clone(),
                rank: config.rank,
                holder: here.map_or_else(
                    || "a process that has not said who it is".to_owned(),
                    |bytes| printable(&bytes, 128),
                ),
            });
        }
        let here = format!("pid {} on {}", host.pid, host.node);
        self.op(self.store.set(&self.keys.here(config.rank), here.as_bytes()))?;

        let own = Opening {
            version: VERSION,
            oldest: OLDEST,
            rank: config.rank,
            ranks: config.ranks,
            given_secret: config.secret.is_some(),
        };
        let key = self.keys.first();
        if self.op(self.store.add(&self.keys.order(), 1))? == 1 {
            return self.op(self.store.set(&key, &own.encode()));
        }
        let bytes = self.wait(&key, "waiting for the first rank's opening")?;
        let first = Opening::parse(&bytes)
            .ok_or_else(|| self.bad_entry(key, format!("{} bytes", bytes.len())))?;
        own.conflict(&first).map_or(Ok(()), |reason| Err(self.refused(reason)))
    }

    /// The secret: the caller's, or rank 0's from the store.
    pub(crate) fn secret(&self) -> Result<Secret, BootstrapError> {
        if let Some(secret) = &self.config.secret {
            return Ok(secret.clone());
        }
        let key = self.keys.secret();
        if self.config.rank == 0 {
            let secret = Secret::generate()?;
            self.op(self.store.set(&key, secret.expose()))?;
            return Ok(secret);
        }
        let mut bytes = self.wait(&key, "waiting for the secret of rank 0")?;
        let secret = <[u8; 32]>::try_from(bytes.as_slice()).map(Secret::from_bytes);
        zeroize::Zeroize::zeroize(&mut bytes);
        secret.map_err(|_| self.bad_entry(key, "a secret has 32 bytes".to_owned()))
    }

    /// Publish `own` and learn what everybody published. Rank 0 collects, the others read the
    /// table that it makes.
    pub(crate) fn gather(&self, own: &Info, secret: Secret) -> Result<Gathered, BootstrapError> {
        let published = own.sign(&self.config.name, &secret);
        self.op(self.store.set(&self.keys.info(own.rank), &published))?;
        if own.rank != 0 {
            let bytes = self.wait(&self.keys.table(), "waiting for the table of all ranks")?;
            let infos = self.check_table(&bytes, &secret)?;
            return Ok(Gathered { secret, infos });
        }
        let mut entries = Vec::with_capacity(self.config.ranks as usize);
        let mut infos = Vec::with_capacity(self.config.ranks as usize);
        entries.push(published);
        for rank in 1..self.config.ranks {
            entries.push(self.wait(&self.keys.info(rank), "waiting for all ranks to come")?);
        }
        for (rank, entry) in (0..).zip(&entries) {
            infos.push(self.check_info(rank, entry, &secret)?);
        }
        self.op(self.store.set(&self.keys.table(), &encode_table(&entries)))?;
        Ok(Gathered { secret, infos })
    }

    /// Publish where this rank is reached and learn it of all ranks.
    pub(crate) fn reach(
        &self,
        own: &[SocketAddr],
        secret: &Secret,
    ) -> Result<Vec<Vec<SocketAddr>>, BootstrapError> {
        let JoinConfig { name, rank, ranks, .. } = self.config;
        let published = reach::sign(own, name, *rank, secret);
        self.op(self.store.set(&self.keys.reach(*rank), &published))?;
        let table = if *rank == 0 {
            let mut entries = vec![published];
            for peer in 1..*ranks {
                entries.push(self.wait(&self.keys.reach(peer), "waiting for all addresses")?);
            }
            let table = encode_table(&entries);
            self.op(self.store.set(&self.keys.reaches(), &table))?;
            table
        } else {
            self.wait(&self.keys.reaches(), "waiting for the table of all addresses")?
        };
        let entries = parse_table(&table, *ranks).ok_or_else(|| {
            let detail = format!("{} bytes are no table of {ranks} ranks", table.len());
            self.bad_entry(self.keys.reaches(), detail)
        })?;
        (0..)
            .zip(entries)
            .map(|(peer, entry)| {
                reach::parse(entry, name, peer, secret).map_err(|detail| BootstrapError::BadInfo {
                    name: name.clone(),
                    rank: *rank,
                    peer,
                    detail,
                })
            })
            .collect()
    }

    fn check_table(
        &self,
        bytes: &[u8],
        secret: &Secret,
    ) -> Result<Vec<SignedInfo>, BootstrapError> {
        let entries = parse_table(bytes, self.config.ranks).ok_or_else(|| {
            let detail =
                format!("{} bytes are no table of {} ranks", bytes.len(), self.config.ranks);
            self.bad_entry(self.keys.table(), detail)
        })?;
        (0..).zip(entries).map(|(rank, entry)| self.check_info(rank, entry, secret)).collect()
    }

    fn check_info(
        &self,
        peer: u32,
        bytes: &[u8],
        secret: &Secret,
    ) -> Result<SignedInfo, BootstrapError> {
        let JoinConfig { name, rank, ranks, .. } = self.config;
        SignedInfo::parse(bytes, name, secret, peer, *ranks).map_err(|error| match error {
            InfoError::Invalid(detail) => {
                BootstrapError::BadInfo { name: name.clone(), rank: *rank, peer, detail }
            }
            InfoError::WrongProof => self.refused(format!(
                "rank {peer} and rank {rank} hold different secrets; give all ranks the same one"
            )),
            InfoError::Version(detail) => self.refused(format!("rank {peer}: {detail}")),
        })
    }

    /// Tell all ranks that wait, now or later, why nobody can join. The first reason stays.
    pub(crate) fn refuse(&self, error: &BootstrapError) {
        let reason = match error {
            // Came from this entry, or is about the caller alone.
            BootstrapError::Refused { reason, .. } => reason.clone(),
            BootstrapError::Argument { .. } => return,
            other => other.to_string(),
        };
        // The store may be what failed; the error goes to the caller in any case.
        if let Ok(None) = self.store.try_get(&self.keys.refused()) {
            let reason = printable(reason.as_bytes(), MAX_REASON_BYTES);
            drop(self.store.set(&self.keys.refused(), reason.as_bytes()));
        }
    }

    /// An error where somebody refused the communicator.
    pub(crate) fn check_refused(&self) -> Result<(), BootstrapError> {
        match self.op(self.store.try_get(&self.keys.refused()))? {
            None => Ok(()),
            Some(reason) => Err(self.refused(printable(&reason, MAX_REASON_BYTES))),
        }
    }

    /// The error of a wait that is over.
    pub(crate) fn timeout(&self, during: &str, missing: Vec<u32>) -> BootstrapError {
        BootstrapError::Timeout {
            name: self.config.name.clone(),
            rank: self.config.rank,
            during: during.to_owned(),
            // Whole milliseconds: nobody acts on less.
            waited: Duration::from_millis(self.started.elapsed().as_millis() as u64),
            missing,
        }
    }

    /// A refusal that this rank found.
    pub(crate) fn refused(&self, reason: String) -> BootstrapError {
        BootstrapError::Refused { name: self.config.name.clone(), rank: self.config.rank, reason }
    }

    /// Wait for an entry or for a refusal, whichever comes first.
    fn wait(&self, key: &str, during: &str) -> Result<Vec<u8>, BootstrapError> {
        let mut backoff = Backoff::store();
        loop {
            if let Some(value) = self.op(self.store.try_get(key))? {
                return Ok(value);
            }
            self.check_refused()?;
            if !backoff.sleep_until(self.deadline) {
                return Err(self.timeout(during, self.missing()?));
            }
        }
    }

    /// Ranks that have not published anything; rank 0 where all have, because the wait was for it.
    fn missing(&self) -> Result<Vec<u32>, BootstrapError> {
        let mut missing = Vec::new();
        for rank in 0..self.config.ranks {
            let here = self.op(self.store.try_get(&self.keys.here(rank)))?;
            if here.is_none() {
                missing.push(rank);
            }
        }
        if missing.is_empty() {
            for rank in 0..self.config.ranks {
                let info = self.op(self.store.try_get(&self.keys.info(rank)))?;
                if info.is_none() {
                    missing.push(rank);
                }
            }
        }
        if missing.is_empty() {
            missing.push(0);
        }
        Ok(missing)
    }

    fn bad_entry(&self, key: String, detail: String) -> BootstrapError {
        BootstrapError::BadEntry {
            name: self.config.name.clone(),
            rank: self.config.rank,
            key,
            detail,
        }
    }

    fn op<T>(&self, result: Result<T, StoreError>) -> Result<T, BootstrapError> {
        result.map_err(|source| BootstrapError::Store {
            name: self.config.name.clone(),
            rank: self.config.rank,
            source,
        })
    }
}
