//! Which program runs a collective of which size, remembered.

use std::collections::HashMap;
use std::sync::Arc;

use stepccl_plan::{
    Algorithm, Choice, Collective, DType, Figures, Limits, Plan, Program, Topology, choose,
};

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
    used: HashMap<Algorithm, u64>,
}

impl Plans {
    pub fn new(
        rank: u32,
        topology: Topology,
        figures: Figures,
        geometry: Geometry,
        reduce_sources: u32,
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
                let prepared = Arc::new(self.prepare(key)?);
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

    fn prepare(&mut self, key: Key) -> Result<Prepared, Error> {
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
        Ok(Prepared::new(&program, &self.geometry, key.dtype, key.count, page, depth))
    }

    fn program(
        &mut self,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Result<Arc<Program>, Error> {
        *self.used.entry(algorithm).or_default() += 1;
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
    pub fn used(&self) -> impl Iterator<Item = (Algorithm, u64)> + '_ {
        self.used.iter().map(|(algorithm, sizes)| (*algorithm, *sizes))
    }

    pub const fn figures(&self) -> &Figures {
        &self.figures
    }
}
