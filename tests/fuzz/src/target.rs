//! The list of targets.

use crate::targets::{board, flight, plan, ring, text, verify};

/// One fuzz target.
#[derive(Debug)]
pub(crate) struct Target {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it reads.
    #[cfg_attr(fuzzing, expect(dead_code, reason = "only people read it"))]
    pub about: &'static str,
    /// Panics where something is wrong.
    pub run: fn(&[u8]),
    /// First inputs, made by the code that is tested.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

impl Target {
    /// The target of that name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|target| target.name == name)
    }
}

/// All targets; `scripts/fuzz` reads the names in this file.
pub(crate) static ALL: &[Target] = &[
    Target {
        name: "handshake",
        about: "frames of two ranks that prove the job's secret to one another",
        run: stepccl_bootstrap::fuzz::handshake,
        seeds: stepccl_bootstrap::fuzz::handshake_seeds,
    },
    Target {
        name: "published",
        about: "what ranks put into the store: openings, infos, tables, addresses",
        run: stepccl_bootstrap::fuzz::published,
        seeds: stepccl_bootstrap::fuzz::published_seeds,
    },
    Target {
        name: "store",
        about: "messages between the TCP store and its clients",
        run: stepccl_bootstrap::fuzz::store,
        seeds: stepccl_bootstrap::fuzz::store_seeds,
    },
    Target {
        name: "tcp",
        about: "the stream of a peer of the TCP engine, from its hello on",
        run: stepccl_engine_tcp::fuzz::peer,
        seeds: stepccl_engine_tcp::fuzz::peer_seeds,
    },
    Target {
        name: "ring",
        about: "rings whose other side writes anything anywhere",
        run: ring::run,
        seeds: ring::seeds,
    },
    Target {
        name: "board",
        about: "a host engine whose peer writes anything into its segment",
        run: board::run,
        seeds: board::seeds,
    },
    Target {
        name: "called",
        about: "words that say what a rank called, and headers of messages",
        run: stepccl::fuzz::called,
        seeds: stepccl::fuzz::called_seeds,
    },
    Target {
        name: "variables",
        about: "variables of the environment",
        run: stepccl::fuzz::variables,
        seeds: stepccl::fuzz::variables_seeds,
    },
    Target {
        name: "text",
        about: "sizes, secrets and names as people write them",
        run: text::run,
        seeds: text::seeds,
    },
    Target {
        name: "flight",
        about: "flight records of other processes, and what is shown of them",
        run: flight::run,
        seeds: flight::seeds,
    },
    Target {
        name: "plan",
        about: "the planners on topologies, sizes and speeds",
        run: plan::run,
        seeds: plan::seeds,
    },
    Target {
        name: "verify",
        about: "the verifier on programs that nobody planned",
        run: verify::run,
        seeds: verify::seeds,
    },
];
