//! Collective communication on DMA engines.
//!
//! A [`Communicator`] joins ranks (processes, threads, or both) and runs collectives between
//! them. A collective is compiled to a plan, the plan to operations on an engine, and the engine
//! moves the bytes. There are two engines: `host`, shared memory between the ranks of a node, and
//! `tcp` between nodes.
//!
//! ```
//! use stepccl::{Communicator, Config, MemoryStore, ReduceOp};
//!
//! let store = MemoryStore::new();
//! std::thread::scope(|scope| {
//!     for rank in 0..2 {
//!         let store = &store;
//!         scope.spawn(move || -> Result<(), stepccl::Error> {
//!             let ranks = Communicator::new(store, "world.0", rank, 2, &Config::default())?;
//!             let mut data = [rank as f32 + 1.0; 5];
//!             ranks.all_reduce_in_place(&mut data, ReduceOp::Sum)?;
//!             assert_eq!(data, [3.0; 5]);
//!             Ok(())
//!         });
//!     }
//! });
//! ```
//!
//! Parts of the ranks make communicators of their own with [`Communicator::split`], which needs no
//! store:
//!
//! ```
//! # use stepccl::{Communicator, Config, MemoryStore, ReduceOp};
//! # let store = MemoryStore::new();
//! # std::thread::scope(|scope| {
//! # for rank in 0..4 {
//! # let store = &store;
//! # scope.spawn(move || -> Result<(), stepccl::Error> {
//! # let ranks = Communicator::new(store, "world.0", rank, 4, &Config::default())?;
//! // Even and odd ranks, in reverse order.
//! if let Some(half) = ranks.split(Some(rank % 2), -(rank as i32))? {
//!     let mut highest = [rank as i32];
//!     half.broadcast(&mut highest, 0)?;
//!     assert_eq!(highest, [2 + rank as i32 % 2]);
//! }
//! # Ok(())
//! # });
//! # }
//! # });
//! ```
//!
//! Before: `runtime/python/src/communicator.rs`. After: `runtime/stepccl/src/communicator.rs`.

mod agreement;
mod announcement;
mod any;
mod bound;
mod call;
mod called;
mod collective;
mod communicator;
mod config;
mod connect;
mod context;
mod eager;
mod eager_limits;
mod element;
mod engines;
mod environment;
mod error;
mod flight;
mod forked;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod geometry;
mod group;
mod header;
mod inner;
mod interrupt;
mod local;
mod logging;
mod measure;
mod meet;
mod memory;
mod moves;
mod nearest;
mod packed;
mod packing;
mod pair;
mod pairs;
mod placement;
mod plans;
mod posts;
mod prepared;
mod progress;
mod pull;
mod request;
mod review;
mod rounds;
mod scratch;
mod settings;
mod shape;
mod short;
mod single_copy;
mod size;
mod slices;
mod split;
mod stats;
mod task;
#[cfg(test)]
mod testing;
mod uneven;
mod way;
mod work;

pub use call::Call;
pub use communicator::Communicator;
pub use config::{Config, EngineChoice, MAX_START_TIMEOUT, MAX_TIMEOUT};
pub use element::{Complex, Element, F8E4M3, F8E5M2, Truth};
pub use error::{Calls, Error, LossReason, OperationName, Ranks, With};
pub use group::Group;
pub use interrupt::Leave;
pub use memory::Memory;
pub use request::{AnyMessage, Message, Request};
pub use review::Review;
pub use settings::{Setting, Source, unknown_variables};
pub use size::parse_size;
pub use stats::Stats;
pub use uneven::{Uneven, UnevenCall};
pub use work::{Keep, Outcome, Work};

pub use stepccl_bootstrap::{
    BootstrapError, FileStore, MemoryStore, PrefixStore, Secret, Store, StoreError, TcpStore,
    TcpStoreLimits, TcpStoreServer,
};
pub use stepccl_engine::Counters;
pub use stepccl_flight as flight_record;
pub use stepccl_plan::{
    Algorithm, Choice, Collective, DType, Figures, Kind, Plan, ReduceOp, Topology,
};

/// Name of the processor's instructions that the host engine adds with.
#[must_use]
pub fn simd_level() -> &'static str {
    stepccl_engine_host::kernel::Level::best().name()
}
