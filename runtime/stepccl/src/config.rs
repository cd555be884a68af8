//! Settings of a communicator.

use std::time::Duration;

use stepccl_engine_tcp::{MAX_LINK_TIMEOUT, MIN_LINK_TIMEOUT};
use stepccl_plan::Algorithm;

use crate::{Error, environment, logging};

/// Staging of all ranks of a node together, unless set.
const NODE_STAGING_BYTES: usize = 8 << 20;
/// Staging of one rank, unless set.
const MAX_DEFAULT_STAGING_BYTES: usize = 4 << 20;
/// Staging that messages between two ranks need at least, for each peer.
const LEAST_BYTES_A_PEER: usize = 1 << 10;
/// Least staging of a rank.
pub(crate) const MIN_STAGING_BYTES: usize = 64 << 10;
/// Most staging of a rank.
pub(crate) const MAX_STAGING_BYTES: usize = 1 << 30;
/// Most pages in flight.
pub(crate) const MAX_DEPTH: u32 = 64;
/// Longest time an operation may be given: clocks do not overflow within it.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// Longest time start-up may be given.
pub const MAX_START_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most channels.
pub(crate) const MAX_CHANNELS: u32 = 64;

/// Which engine moves the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// Shared memory within a node, TCP between nodes.
    #[default]
    Auto,
    /// Shared memory alone; ranks of several nodes are refused.
    Host,
    /// TCP between all ranks, those of one node too: to test and to compare.
    Tcp,
}

impl EngineChoice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Host, Self::Tcp];

    /// Name as users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Host => "host",
            Self::Tcp => "tcp",
        }
    }
}

/// Settings of a communicator. Every rank must be given the same `buffer_bytes`,
/// `pipeline_depth`, `page_bytes`, `algorithm` and `single_copy`; start-up checks it.
#[derive(Clone, Debug)]
pub struct Config {
    /// Upper bound of this rank's staging in bytes; unset: 8 MiB shared by the ranks of the node.
    pub buffer_bytes: Option<usize>,
    /// DMA channels used at once; 0: the calling thread moves the bytes.
    pub channels: u32,
    /// Copies below this many bytes are not given to a channel.
    pub channel_min_bytes: usize,
    /// Pages in flight; unset: the cost model chooses.
    pub pipeline_depth: Option<u32>,
    /// Bytes of a page of one block; unset: the cost model chooses.
    pub page_bytes: Option<usize>,
    /// Algorithm for every collective that it exists for; unset: the cost model chooses.
    pub algorithm: Option<Algorithm>,
    /// Whether ranks read long messages from one another's memory; unset: where that works, is fast,
    /// and neither algorithm, page, depth nor channels are set, which are about the other way.
    pub single_copy: Option<bool>,
    /// Time an operation may take unless its call says otherwise.
    pub timeout: Duration,
    /// Time start-up may take.
    pub start_timeout: Duration,
    /// Which engine moves the bytes; the same on every rank.
    pub engine: EngineChoice,
    /// Network interfaces between nodes, as [`stepccl_bootstrap::Network::interfaces`] says; unset:
    /// all.
    pub socket_ifname: Option<String>,
    /// Between nodes, a link whose other side's host does not answer for so long counts as cut.
    pub link_timeout: Duration,
    /// The job's secret; unset: rank 0 makes one and the store passes it on.
    pub secret: Option<String>,
    /// Operations that the flight record keeps; 0: none is kept.
    pub flight_records: usize,
    /// What is logged: `off`, `error`, `warn`, `info`, `debug` or `trace`; unset: `warn`, unless
    /// the application has a logger of its own.
    pub log: Option<String>,
    /// File to log to, where `%h` is the host, `%p` the process and `%r` the rank of its first
    /// communicator; unset: standard error.
    pub log_file: Option<String>,
    /// Signal that logs the flight records of the process, such as `USR2`; unset: none.
    pub dump_signal: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            buffer_bytes: None,
            channels: 0,
            channel_min_bytes: 64 << 10,
            pipeline_depth: None,
            page_bytes: None,
            algorithm: None,
            single_copy: None,
            timeout: Duration::from_secs(1800),
            start_timeout: Duration::from_secs(300),
            engine: EngineChoice::Auto,
            socket_ifname: None,
            link_timeout: stepccl_engine_tcp::DEFAULT_LINK_TIMEOUT,
            secret: None,
            flight_records: 2048,
            log: None,
            log_file: None,
            dump_signal: None,
        }
    }
}

impl Config {
    /// The defaults, with the `STEPCCL_` variables of the process over them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] naming the variable.
    pub fn from_env() -> Result<Self, Error> {
        let mut config = Self::default();
        environment::apply(&mut config, &environment::variables_of_process())?;
        config.check().map_err(environment::name_variable)?;
        Ok(config)
    }

    /// Refuse values out of range.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] naming the setting.
    pub fn check(&self) -> Result<(), Error> {
        range("buffer_size", self.buffer_bytes, MIN_STAGING_BYTES, MAX_STAGING_BYTES)?;
        range("dma_concurrency", Some(self.channels), 0, MAX_CHANNELS)?;
        range("pipeline_depth", self.pipeline_depth, 1, MAX_DEPTH)?;
        range("page_size", self.page_bytes, 64, MAX_STAGING_BYTES)?;
        let (low, high) = (MIN_LINK_TIMEOUT.as_secs_f64(), MAX_LINK_TIMEOUT.as_secs_f64());
        range("link_timeout", Some(self.link_timeout.as_secs_f64()), low, high)?;
        range("flight_records", Some(self.flight_records), 0, stepccl_flight::layout::MAX_RECORDS)?;
        logging::level(self.log.as_deref())?;
        stepccl_flight::dump_signal(self.dump_signal.as_deref()).map_err(|rule| {
            Error::invalid("dump_signal", self.dump_signal.as_deref().unwrap_or(""), rule)
        })?;
        check_time("timeout", self.timeout, MAX_TIMEOUT)?;
        check_time("start_timeout", self.start_timeout, MAX_START_TIMEOUT)
    }

    /// Whether single copies are wished for; None: where they are faster. Who chooses how messages
    /// are staged does not want them past the staging.
    pub(crate) fn wants_single_copy(&self) -> Option<bool> {
        let staged = self.algorithm.is_some()
            || self.page_bytes.is_some()
            || self.pipeline_depth.is_some()
            || self.channels > 0;
        self.single_copy.or(staged.then_some(false))
    }

    /// Staging of one rank in bytes, where `ranks` share the node.
    pub(crate) fn staging_bytes(&self, ranks: u32) -> usize {
        let least = MIN_STAGING_BYTES.max(ranks as usize * LEAST_BYTES_A_PEER);
        let share = (NODE_STAGING_BYTES / ranks as usize).min(MAX_DEFAULT_STAGING_BYTES);
        self.buffer_bytes.unwrap_or(share).max(least) / 4096 * 4096
    }
}

/// Refuse a time that is zero or longer than `most`.
pub(crate) fn check_time(name: &'static str, time: Duration, most: Duration) -> Result<(), Error> {
    if time.is_zero() || time > most {
        let rule = format!("must be above 0 and at most {} seconds", most.as_secs());
        return Err(Error::invalid(name, format_args!("{time:?}"), rule));
    }
    Ok(())
}

fn range<T: PartialOrd + Copy + std::fmt::Display>(
    name: &'static str,
    value: Option<T>,
    low: T,
    high: T,
) -> Result<(), Error> {
    match value {
        Some(v) if v < low || v > high => {
            Err(Error::invalid(name, v, format!("must be from {low} to {high}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_staging_stays_below_8_mib_a_node_up_to_64_ranks() {
        for ranks in 1..=64 {
            let all = Config::default().staging_bytes(ranks) * ranks as usize;
            assert!(all <= 8 << 20, "{ranks} ranks: {all}");
        }
    }

    #[test]
    fn values_out_of_range_are_named() {
        let bad = [
            Config { buffer_bytes: Some(1), ..Config::default() },
            Config { channels: 65, ..Config::default() },
            Config { pipeline_depth: Some(0), ..Config::default() },
            Config { page_bytes: Some(1), ..Config::default() },
            Config { link_timeout: Duration::from_secs(1), ..Config::default() },
            Config { flight_records: usize::MAX, ..Config::default() },
            Config { log: Some("loud".to_owned()), ..Config::default() },
            Config { dump_signal: Some("KILL".to_owned()), ..Config::default() },
            Config { timeout: Duration::ZERO, ..Config::default() },
            Config { timeout: Duration::MAX, ..Config::default() },
            Config { start_timeout: MAX_START_TIMEOUT * 2, ..Config::default() },
        ];
        for config in bad {
            assert!(matches!(config.check(), Err(Error::InvalidArgument { .. })), "{config:?}");
        }
    }
}
