//! New communicators from parts of one that is there, without a store.
//!
//! The ranks meet as they do at a store, but what they would read there is exchanged over the
//! parent. Every rank of the parent takes part in each exchange, so that none waits for another.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Instant;

use stepccl_bootstrap::{MemoryStore, Store, StoreError};
use stepccl_plan::{DType, ReduceOp};

use crate::{Communicator, Config, Error, Memory, Uneven, UnevenCall};

/// Bytes of the secret that each rank offers; that of a new rank 0 is used.
const SECRET_BYTES: usize = 32;
/// Most bytes of one rank in an exchange.
const MAX_BYTES: usize = 1 << 20;

/// What a rank asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    color: Option<u32>,
    key: i32,
    secret: [u8; SECRET_BYTES],
}

impl Wish {
    const BYTES: usize = 9 + SECRET_BYTES;

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = u8::from(self.color.is_some());
        bytes[1..5].copy_from_slice(&self.color.unwrap_or(0).to_le_bytes());
        bytes[5..9].copy_from_slice(&self.key.to_le_bytes());
        bytes[9..].copy_from_slice(&self.secret);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&takes_part, rest) = bytes.split_first()?;
        let (color, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let color = (takes_part == 1).then_some(u32::from_le_bytes(*color));
        let (key, secret) = (i32::from_le_bytes(*key), rest.try_into().ok()?);
        Some(Self { color, key, secret })
    }
}

/// Ranks of the parent that have `color`, in the order in which they are numbered anew.
fn members(wishes: &[Wish], color: u32) -> Vec<u32> {
    let mut members: Vec<(i32, u32)> = (0..)
        .zip(wishes)
        .filter(|(_, wish)| wish.color == Some(color))
        .map(|(rank, wish)| (wish.key, rank))
        .collect();
    members.sort_unstable();
    members.into_iter().map(|(_, rank)| rank).collect()
}

/// What a rank brings to an exchange of a meeting: a value, or why it has none.
type Brought = Result<Vec<u8>, String>;

fn encode(brought: &Brought) -> Vec<u8> {
    let (kind, bytes) = match brought {
        Ok(value) => (1, value.as_slice()),
        Err(reason) => (0, reason.as_bytes()),
    };
    [&[kind], bytes].concat()
}

fn decode(bytes: &[u8]) -> Brought {
    match bytes.split_first() {
        Some((1, value)) => Ok(value.to_vec()),
        Some((_, reason)) => Err(String::from_utf8_lossy(reason).into_owned()),
        None => Err("it sent nothing".to_owned()),
    }
}

/// A store of the ranks of a new communicator, filled by two exchanges over the parent.
#[derive(Debug)]
struct Meeting<'a> {
    parent: &'a Communicator,
    keys: String,
    /// Ranks of the parent, by new rank.
    members: &'a [u32],
    rank: u32,
    entries: MemoryStore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    exchanges: u32,
    failed: Option<Error>,
}

/// What every rank publishes, then the table that rank 0 makes of it.
const EXCHANGES: u32 = 2;

impl<'a> Meeting<'a> {
    fn new(parent: &'a Communicator, name: &str, members: &'a [u32], rank: u32) -> Self {
        let keys = format!("stepccl/{name}");
        let (entries, state) = (MemoryStore::new(), Mutex::default());
        Self { parent, keys, members, rank, entries, state }
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.keys)
    }

    /// Exchange number `number`, unless it was made.
    fn exchange(&self, number: u32, brought: &Brought) -> Result<(), StoreError> {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if state.exchanges > number {
            return Ok(());
        }
        state.exchanges = number + 1;
        let all = self.parent.exchange(&encode(brought)).map_err(|error| {
            let message = error.to_string();
            state.exchanges = EXCHANGES;
            state.failed = Some(error);
            StoreError::Unreachable { address: "parent communicator".to_owned(), message }
        })?;
        drop(state);
        for (rank, member) in (0..).zip(self.members) {
            match decode(all.get(*member as usize).map_or(&[], Vec::as_slice)) {
                Err(reason) => {
                    let reason = format!("rank {rank}: {reason}");
                    self.entries.set(&self.key("refused"), reason.as_bytes())?;
                }
                Ok(info) if number == 0 => {
                    self.entries.set(&self.key(&format!("info/{rank}")), &info)?;
                }
                Ok(table) if rank == 0 => self.entries.set(&self.key("table"), &table)?,
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Make the exchanges that are left, so that nobody waits for this rank.
    fn finish(self, failed: Option<&Error>) -> Option<Error> {
        let brought = match failed {
            Some(error) => Err(error.to_string()),
            None => Ok(Vec::new()),
        };
        for number in 0..EXCHANGES {
            // What goes wrong with the parent is kept, and this rank has no use for the rest.
            let _ = self.exchange(number, &brought);
        }
        self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).failed
    }
}

impl Store for Meeting<'_> {
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        if key == self.key(&format!("info/{}", self.rank)) {
            return self.exchange(0, &Ok(value.to_vec()));
        }
        if key == self.key("table") {
            return self.exchange(1, &Ok(value.to_vec()));
        }
        self.entries.set(key, value)
    }

    fn get(&self, key: &str, deadline: Instant) -> Result<Vec<u8>, StoreError> {
        match self.try_get(key)? {
            Some(value) => Ok(value),
            None => self.entries.get(key, deadline),
        }
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        if key == self.key("table") && self.rank != 0 {
            self.exchange(1, &Ok(Vec::new()))?;
        }
        self.entries.try_get(key)
    }

    fn add(&self, key: &str, n: i64) -> Result<i64, StoreError> {
        self.entries.add(key, n)
    }
}

impl Communicator {
    /// Make communicators of parts of this one. Every rank calls it, in the order of its
    /// collectives; ranks that give the same `color` come together, numbered by `key` and, where
    /// that is the same, by their rank here. `None` takes no part and gets none.
    ///
    /// The new communicators have the settings of this one, a secret of their own, and do not
    /// depend on it once they are there.
    ///
    /// # Errors
    ///
    /// As for a collective of this communicator, and as [`new`](Self::new). Where a part cannot be
    /// made, its ranks hear of it; this communicator works on unless it is broken itself.
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>, Error> {
        self.split_with(color, key, &self.config)
    }

    /// As [`split`](Self::split), with other settings, the same on every rank of a part. A secret
    /// in them is not used.
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split).
    pub fn split_with(
        &self,
        color: Option<u32>,
        key: i32,
        config: &Config,
    ) -> Result<Option<Self>, Error> {
        config.check()?;
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(|error| Error::System {
            what: "random bytes for the secret of a new communicator".to_owned(),
            message: error.to_string(),
        })?;
        let all = self.exchange(&Wish { color, key, secret }.encode())?;
        let wishes = all.iter().map(|bytes| Wish::decode(bytes)).collect::<Option<Vec<_>>>();
        let wishes = wishes.ok_or_else(|| Error::System {
            what: format!("split of communicator '{}', rank {}", self.name(), self.rank()),
            message: "a rank sent what is no wish; run one release on every rank".to_owned(),
        })?;
        let number = self.splits.fetch_add(1, Ordering::Relaxed);
        let Some(color) = color else {
            let failed = Meeting::new(self, "", &[], 0).finish(None);
            return failed.map_or(Ok(None), Err);
        };
        let members = members(&wishes, color);
        // This rank is one of them: it has that color.
        let rank = (0..).zip(&members).find(|(_, m)| **m == self.rank()).map_or(0, |(new, _)| new);
        let name = format!("{}/{number}.{color}", self.name());
        let secret = members.first().map(|first| wishes[*first as usize].secret);
        let hex = secret.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
        let config = Config { secret: Some(hex), ..config.clone() };
        let meeting = Meeting::new(self, &name, &members, rank);
        let made = Self::new(&meeting, &name, rank, members.len() as u32, &config);
        let failed = meeting.finish(made.as_ref().err());
        match made {
            Ok(made) => Ok(Some(made)),
            // Where the parent fails, its own error says more.
            Err(error) => Err(failed.unwrap_or(error)),
        }
    }

    /// What every rank gives, on every rank, in order of rank.
    fn exchange(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        if own.len() > MAX_BYTES {
            let rule = format!("must be at most {MAX_BYTES}");
            return Err(Error::invalid("bytes", own.len(), rule));
        }
        let mut lengths = vec![0i64; self.ranks() as usize];
        self.all_gather(&[own.len() as i64], &mut lengths)?;
        let counts: Box<[usize]> =
            lengths.iter().map(|l| usize::try_from(*l).unwrap_or(0).min(MAX_BYTES)).collect();
        let mut all = vec![0u8; counts.iter().sum()];
        let input = Memory::Contiguous(own.as_ptr().cast_mut());
        let output = Memory::Contiguous(all.as_mut_ptr());
        let uneven = Uneven::AllGather { counts: counts.clone() };
        let (dtype, op, premul) = (DType::U8, ReduceOp::Sum, 1.0);
        let call = UnevenCall { uneven, dtype, op, premul, input, output };
        // SAFETY:
        // - Both buffers live until `run` returns, are as long as the counts say, and are apart.
        unsafe { self.run(call, None)? };
        let mut rest = all.as_slice();
        Ok(counts
            .iter()
            .map(|count| {
                let (own, others) = rest.split_at(*count);
                rest = others;
                own.to_vec()
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_survive_the_way() {
        for color in [None, Some(0), Some(u32::MAX)] {
            let wish = Wish { color, key: -7, secret: [9; SECRET_BYTES] };
            assert_eq!(Wish::decode(&wish.encode()), Some(wish));
        }
        assert_eq!(Wish::decode(&[1; Wish::BYTES - 1]), None);
        assert_eq!(Wish::decode(&[1; Wish::BYTES + 1]), None);
    }

    #[test]
    fn ranks_are_ordered_by_key_and_then_by_rank() {
        let wish = |color, key| Wish { color, key, secret: [0; SECRET_BYTES] };
        let wishes = [
            wish(Some(1), 5),
            wish(Some(1), -5),
            wish(None, 0),
            wish(Some(2), 0),
            wish(Some(1), 5),
        ];
        assert_eq!(members(&wishes, 1), [1, 0, 4]);
        assert_eq!(members(&wishes, 2), [3]);
        assert_eq!(members(&wishes, 3), [0; 0]);
    }

    #[test]
    fn what_is_brought_survives_the_way() {
        for brought in [Ok(vec![1, 2]), Ok(Vec::new()), Err("why".to_owned())] {
            assert_eq!(decode(&encode(&brought)), brought);
        }
        assert!(decode(&[]).is_err());
    }
}
