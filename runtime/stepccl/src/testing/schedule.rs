//! Drives the executors of all ranks in a random order, and finds out when nothing moves any more.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use stepccl_plan::{Collective, Topology};

use super::manners::Manners;
use super::mock::{self, Shared, lock};
use super::operations::{Part, Setting, Spec};
use super::random::Random;
use super::world::World;
use crate::Error;
use crate::geometry::Geometry;
use crate::progress::Progress;
use crate::work::Keep;

/// Steps without any change after which everything under way is let through.
const PATIENCE: u32 = 2000;

/// One rank.
#[derive(Debug)]
pub(super) struct Rank {
    pub progress: Progress,
    /// Operations to be called, in order.
    todo: VecDeque<Part>,
    /// Operations called and not ended.
    pub under_way: Vec<Part>,
    /// Operations that ended, with their number.
    pub ended: Vec<(u64, Result<(), Error>)>,
    left: Vec<Part>,
}

impl Rank {
    /// Call `part` after the others.
    pub fn queue(&mut self, part: Part) {
        self.todo.push_back(part);
    }
}

/// All ranks and their world.
#[derive(Debug)]
pub(super) struct Cluster {
    pub world: Shared,
    pub ranks: Vec<Rank>,
    pub setting: Setting,
    random: Random,
    operations: u64,
    /// Ranks that have called a barrier, by its number.
    barriers: HashMap<u64, u32>,
    keeps: bool,
}

impl Cluster {
    pub fn new(ranks: u32, nodes: u32, staging_bytes: usize, manners: Manners, seed: u64) -> Self {
        let geometry = Geometry::new(ranks, staging_bytes, false);
        let topology = Topology::uniform(ranks, nodes).expect("nodes that have ranks");
        let world = World::new(ranks, staging_bytes, geometry.flags(), manners, seed ^ 1);
        let world = Arc::new(Mutex::new(world));
        let rank = |rank| Rank {
            progress: mock::progress(&world, rank, geometry, staging_bytes).0,
            todo: VecDeque::new(),
            under_way: Vec::new(),
            ended: Vec::new(),
            left: Vec::new(),
        };
        Self {
            ranks: (0..ranks).map(rank).collect(),
            world,
            setting: Setting { topology, geometry },
            random: Random::new(seed),
            operations: 0,
            barriers: HashMap::new(),
            keeps: false,
        }
    }

    /// Every rank's share of the next operation.
    pub fn parts(&mut self, spec: &Spec) -> Vec<Option<Part>> {
        let parts = self.setting.parts(spec, self.operations, &mut self.random);
        self.operations += 1;
        parts
    }

    /// Let all ranks call `spec` next.
    pub fn call(&mut self, spec: &Spec) {
        let parts = self.parts(spec);
        for (rank, part) in self.ranks.iter_mut().zip(parts) {
            rank.todo.extend(part);
        }
    }

    /// Operations that are added from now on keep something alive.
    pub fn keep_everything(&mut self) {
        self.keeps = true;
    }

    /// Let `rank` look at deadlines and peers, as when nothing moves.
    pub fn rest(&mut self, rank: usize) {
        self.ranks[rank].progress.rest_all(None);
        self.collect(rank);
    }

    pub fn is_done(&self) -> bool {
        self.ranks.iter().all(|r| r.todo.is_empty() && r.under_way.is_empty())
    }

    /// Add the next operation of `rank`, where it has one.
    pub fn add(&mut self, rank: usize) -> bool {
        let Some(mut part) = self.ranks[rank].todo.pop_front() else { return false };
        if matches!(part.spec, Spec::Collective { collective: Collective::Barrier, .. }) {
            *self.barriers.entry(part.identity.sequence).or_default() += 1;
        }
        let mut entry = part.entry();
        if self.keeps {
            entry.keep = Keep::new(0u8);
        }
        self.ranks[rank].under_way.push(part);
        self.ranks[rank].progress.add(entry);
        true
    }

    /// Let `rank` advance. Whether it did.
    pub fn pass(&mut self, rank: usize) -> bool {
        let moved = self.ranks[rank].progress.pass();
        self.collect(rank);
        moved
    }

    /// Take the operations of `rank` that ended.
    fn collect(&mut self, rank: usize) {
        let Rank { progress, under_way, ended, left, .. } = &mut self.ranks[rank];
        for end in progress.take_ended() {
            let at = under_way.iter().position(|p| Arc::ptr_eq(&p.state, &end.state));
            let part = under_way.remove(at.expect("an operation that was called"));
            let number = part.identity.sequence;
            if end.outcome.is_ok() {
                if let Err(wrong) = part.check() {
                    panic!("rank {rank}, operation {number}: {wrong}");
                }
                if let Some(called) = self.barriers.get(&number) {
                    let all = self.setting.geometry.ranks;
                    assert_eq!(*called, all, "rank {rank} is through barrier {number} too early");
                }
            }
            ended.push((number, end.outcome));
            // A channel may still be at it after a failure.
            left.push(part);
        }
    }

    /// Run until everything is done, in a random order.
    ///
    /// # Panics
    ///
    /// Where a result is wrong, an operation fails, or nothing moves any more.
    pub fn run(&mut self) {
        let ranks = self.ranks.len();
        let (mut favourite, mut burst, mut still) = (0, 0, 0);
        while !self.is_done() {
            if burst == 0 {
                favourite = self.random.below(ranks);
                burst = 1 + self.random.below(60);
            }
            burst -= 1;
            let rank = if self.random.percent(80) { favourite } else { self.random.below(ranks) };
            let moved = match self.random.below(8) {
                0 | 1 => {
                    lock(&self.world).tick();
                    false
                }
                2 if self.ranks[rank].under_way.len() < 12 => self.add(rank),
                _ => self.pass(rank),
            };
            still = if moved { 0 } else { still + 1 };
            if still > PATIENCE {
                self.settle();
                still = 0;
            }
        }
        self.finish();
    }

    /// Let all that is under way arrive; then some rank must move.
    fn settle(&mut self) {
        let full = lock(&self.world).manners.full;
        lock(&self.world).calm();
        let mut moved = false;
        for rank in 0..self.ranks.len() {
            while self.add(rank) {
                moved = true;
            }
            moved |= self.pass(rank);
        }
        let busy = lock(&self.world).is_busy();
        lock(&self.world).manners.full = full;
        assert!(moved || busy || self.is_done(), "deadlock: {}", self.describe());
    }

    fn finish(&mut self) {
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            for (number, outcome) in &rank.ended {
                if let Err(error) = outcome {
                    panic!("rank {at}, operation {number}: {error}");
                }
            }
            assert!(rank.progress.is_empty(), "rank {at} still has work");
            assert_eq!(rank.progress.cx.in_progress(), 0, "rank {at} still waits for a channel");
            let mut last = HashMap::new();
            for part in &rank.left {
                let before = last.insert(part.lane, part.identity.sequence);
                assert!(before < Some(part.identity.sequence), "rank {at}: out of order");
            }
        }
        let regions = lock(&self.world).regions();
        assert_eq!(regions, 0, "regions that nobody gave back");
    }

    /// What every rank waits for.
    fn describe(&self) -> String {
        let one = |(at, rank): (usize, &Rank)| {
            let under_way: Vec<_> =
                rank.under_way.iter().map(|p| (p.identity.sequence, &p.spec)).collect();
            format!("\nrank {at} waits for {:?} in {under_way:?}", rank.progress.cx.waits)
        };
        self.ranks.iter().enumerate().map(one).collect()
    }
}
