//! Which program runs a collective of which size, remembered.

use std::collections::HashMap;
use std::sync::Arc;

use stepccl_plan::{
    Algorithm, Choice, Collective, DType, Figures, Limits, Plan, Program, Topology, choose,
};

use crate::eager::posted_bytes;
use crate::geometry::Geometry;
use crate::prepared::Prepared;
use crate::{Config, Error, flight};

/// Blocks of so many bytes are posted wherever there is a board: they travel with their number.
const LEAST_EAGER_BYTES: usize = 32;
/// Sizes remembered at once.
const REMEMBERED: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    collective: Collective,
    dtype: DType,
    count: usize,
}

/// Programs of one rank.
#[derive(Debug)]
pub(crate) struct Plans {
    rank: u32,
    topology: Topology,
    figures: Figures,
    geometry: Geometry,
    depth: Option<u32>,
    page_bytes: Option<usize>,
    algorithm: Option<Algorithm>,
    reduce_sources: u32,
    programs: HashMap<(Collective, Algorithm), Arc<Program>>,
    prepared: HashMap<Key, Arc<Prepared>>,
    last: Option<(Key, Arc<Prepared>)>,
    used: HashMap<&'static str, u64>,
    /// Bytes of data that a post may have; 0 where there are no boards.
    eager_bytes: usize,
}

impl Plans {
    pub fn new(
        rank: u32,
        topology: Topology,
        figures: Figures,
        geometry: Geometry,
        reduce_sources: u32,
        eager_bytes: usize,
        config: &Config,
    ) -> Self {
        Self {
            rank,
            topology,
            figures,
            geometry,
            depth: config.pipeline_depth,
            page_bytes: config.page_bytes,
            algorithm: config.algorithm,
            reduce_sources,
            programs: HashMap::new(),
            prepared: HashMap::new(),
            last: None,
            used: HashMap::new(),
            eager_bytes,
        }
    }

    /// The program for this collective and size.
    pub fn get(
        &mut self,
        collective: Collective,
        dtype: DType,
        count: usize,
    ) -> Result<Arc<Prepared>, Error> {
        let key = Key { collective, dtype, count };
        if let Some((last, prepared)) = &self.last
            && *last == key
        {
            return Ok(Arc::clone(prepared));
        }
        let prepared = match self.prepared.get(&key) {
            Some(prepared) => Arc::clone(prepared),
            None => {
                let prepared = self.prepare(key)?;
                if self.prepared.len() >= REMEMBERED {
                    self.prepared.clear();
                }
                self.prepared.insert(key, Arc::clone(&prepared));
                prepared
            }
        };
        self.last = Some((key, Arc::clone(&prepared)));
        Ok(prepared)
    }

    /// Longest block in bytes for which posts are the faster way; 0: none. The same on every rank:
    /// the figures are those of rank 0, and which rank has which part does not matter.
    pub fn eager_limit(&mut self, collective: Collective) -> usize {
        let ranks = self.topology.ranks();
        // What the user asked for is done, where it can be.
        let forced = self.algorithm.is_some_and(|a| a.supports(collective, &self.topology));
        if ranks == 1 || self.eager_bytes == 0 || forced {
            return 0;
        }
        let mut limit = 0;
        let mut block = LEAST_EAGER_BYTES;
        while posted_bytes(collective, block, ranks) <= self.eager_bytes
            && (block == LEAST_EAGER_BYTES || self.is_eager(collective, block))
        {
            limit = block;
            block *= 2;
        }
        if limit > 0 {
            *self.used.entry("eager").or_default() += 1;
        }
        limit
    }

    fn is_eager(&self, collective: Collective, block: usize) -> bool {
        let Ok(choice) = self.choice(collective, DType::F32, block / DType::F32.size()) else {
            return false;
        };
        let sources = match collective {
            Collective::Broadcast { .. } | Collective::Scatter { .. } => 1.0,
            _ => f64::from(self.topology.ranks()),
        };
        let rate = if collective.reduces() {
            self.figures.reduce_bytes_per_second
        } else {
            self.figures.copy_bytes_per_second
        };
        let posted = posted_bytes(collective, block, self.topology.ranks()) as f64;
        let taken = sources * block as f64;
        let seconds = posted / self.figures.copy_bytes_per_second + taken / rate;
        seconds.mul_add(1e9, self.figures.local.latency_ns) <= choice.predicted.as_secs_f64() * 1e9
    }

    /// What the cost model says about this collective and size.
    pub fn choice(
        &self,
        collective: Collective,
        dtype: DType,
        count: usize,
    ) -> Result<Choice, Error> {
        let limits = Limits {
            staging_bytes: self.geometry.large_bytes as u64,
            max_depth: self.depth.unwrap_or(crate::config::MAX_DEPTH),
            algorithm: self
                .algorithm
                .filter(|algorithm| algorithm.supports(collective, &self.topology)),
            flags: self.geometry.phases,
            reduce_sources: self.reduce_sources,
        };
        Ok(choose(collective, &self.topology, count, dtype, &self.figures, &limits)?)
    }

    fn prepare(&mut self, key: Key) -> Result<Arc<Prepared>, Error> {
        let choice = self.choice(key.collective, key.dtype, key.count)?;
        let program = self.program(key.collective, choice.algorithm)?;
        let size = key.dtype.size();
        let depth = self.depth.unwrap_or(choice.depth);
        let mut page = self.page_bytes.map_or(choice.page_elements, |bytes| bytes / size);
        // What the user set must still fit: pages shrink before the depth does.
        let areas = (program.areas as usize).max(1);
        let fits = self.geometry.large_bytes / depth as usize / areas / 64 * 64 / size;
        page = page.min(fits);
        if page == 0 {
            return Err(Error::invalid(
                "buffer_size",
                format_args!("{} bytes of staging", self.geometry.large_bytes),
                format!(
                    "{} of {} ranks at depth {depth} needs at least {} bytes",
                    key.collective,
                    self.topology.ranks(),
                    64 * areas * depth as usize
                ),
            ));
        }
        let (dtype, count) = (key.dtype, key.count);
        let prepared = Prepared::new(&program, &self.geometry, dtype, count, page, depth);
        let algorithm = flight::algorithm_code(choice.algorithm);
        Ok(Arc::new(Prepared { algorithm, ..prepared }))
    }

    fn program(
        &mut self,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Result<Arc<Program>, Error> {
        *self.used.entry(algorithm.name()).or_default() += 1;
        if let Some(program) = self.programs.get(&(collective, algorithm)) {
            return Ok(Arc::clone(program));
        }
        let program = Plan::new(collective, &self.topology, algorithm)?.program(self.rank);
        // The cost model respects the limit; a plan that does not would write into other flags.
        if program.flags > self.geometry.phases {
            let (needs, has) = (program.flags, self.geometry.phases);
            return Err(Error::NotSupported {
                what: format!("{algorithm} for {collective} of {} ranks", self.topology.ranks()),
                why: format!(
                    "it needs {needs} flags and there are {has}; choose another STEPCCL_ALGORITHM"
                ),
            });
        }
        let program = Arc::new(program);
        self.programs.insert((collective, algorithm), Arc::clone(&program));
        Ok(program)
    }

    /// How many sizes each algorithm was chosen for.
    pub fn used(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.used.iter().map(|(name, sizes)| (*name, *sizes))
    }

    pub const fn figures(&self) -> &Figures {
        &self.figures
    }
}
