//! Which program runs a collective of which size, remembered.

use std::collections::HashMap;
use std::sync::Arc;

use stepccl_plan::{
    Algorithm, Choice, Collective, DType, Figures, Limits, Plan, Program, Topology, choose,
};

use crate::eager::posted_bytes;
use crate::geometry::Geometry;
use crate::prepared::Prepared;
use crate::{Config, Error};

/// Sizes remembered at once.
const REMEMBERED: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    collective: Collective,
    dtype: DType,
    count: usize,
}

/// How a collective of some size runs.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// As posts on boards, which carry the data.
    Eager,
    /// By a program.
    Program(Arc<Prepared>),
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
    ways: HashMap<Key, Way>,
    last: Option<(Key, Way)>,
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
            ways: HashMap::new(),
            last: None,
            used: HashMap::new(),
            eager_bytes,
        }
    }

    /// How to run this collective of this size.
    pub fn get(
        &mut self,
        collective: Collective,
        dtype: DType,
        count: usize,
    ) -> Result<Way, Error> {
        let key = Key { collective, dtype, count };
        if let Some((last, way)) = &self.last
            && *last == key
        {
            return Ok(way.clone());
        }
        let way = match self.ways.get(&key) {
            Some(way) => way.clone(),
            None => {
                let way = self.prepare(key)?;
                if self.ways.len() >= REMEMBERED {
                    self.ways.clear();
                }
                self.ways.insert(key, way.clone());
                way
            }
        };
        self.last = Some((key, way.clone()));
        Ok(way)
    }

    /// Whether posts are the faster way, as far as they can be. The same on every rank: the
    /// figures are those of rank 0, and what rank has which part does not matter.
    fn is_eager(&self, key: Key, choice: &Choice) -> bool {
        let ranks = self.topology.ranks();
        let block = key.count.saturating_mul(key.dtype.size());
        let posted = posted_bytes(key.collective, block, ranks);
        if ranks == 1 || self.eager_bytes == 0 || posted > self.eager_bytes {
            return false;
        }
        // What the user asked for is done, where it can be.
        if self.algorithm.is_some_and(|a| a.supports(key.collective, &self.topology)) {
            return false;
        }
        let sources = match key.collective {
            Collective::Broadcast { .. } | Collective::Scatter { .. } => 1.0,
            Collective::Barrier => 0.0,
            _ => f64::from(ranks),
        };
        let rate = if key.collective.reduces() {
            self.figures.reduce_bytes_per_second
        } else {
            self.figures.copy_bytes_per_second
        };
        let (posted, taken) = (posted as f64, sources * block as f64);
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

    fn prepare(&mut self, key: Key) -> Result<Way, Error> {
        let choice = self.choice(key.collective, key.dtype, key.count)?;
        if self.is_eager(key, &choice) {
            *self.used.entry("eager").or_default() += 1;
            return Ok(Way::Eager);
        }
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
        Ok(Way::Program(Arc::new(prepared)))
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
