//! The Rust of the documents does what they say.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stepccl::{Communicator, Config, MemoryStore};

type Block = fn(&Communicator) -> Result<(), Box<dyn std::error::Error>>;

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

#[test]
fn each_block_runs_on_two_and_four_ranks() {
    assert!(BLOCKS.len() >= 9, "blocks are not found: {}", BLOCKS.len());
    for (place, block) in BLOCKS {
        for ranks in [2, 4] {
            let store = MemoryStore::new();
            std::thread::scope(|scope| {
                for rank in 0..ranks {
                    let store = &store;
                    scope.spawn(move || {
                        let config = Config {
                            log: Some("off".to_owned()),
                            timeout: Duration::from_secs(60),
                            ..Config::default()
                        };
                        let comm =
                            Communicator::new(store, "world.0", rank, ranks, &config).unwrap();
                        block(&comm).unwrap_or_else(|error| panic!("{place}: {error}"));
                    });
                }
            });
        }
    }
}

#[test]
fn the_program_runs_as_two_processes() {
    let store = tempfile::tempdir().unwrap();
    let start = |rank: &str| -> Child {
        Command::new(env!("CARGO_BIN_EXE_stepccl-tutorial"))
            .arg(store.path())
            .args([rank, "2"])
            .env("STEPCCL_TIMEOUT", "60")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let ranks = ["0", "1"].map(start);
    for (rank, process) in (0..).zip(ranks) {
        let output = process.wait_with_output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(printed, format!("rank {rank} of 2: [1.0, 2.0, 0.5]\n"));
    }
    let late = start("0").wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&late.stderr);
    assert!(!late.status.success() && text.contains("is already taken by pid"), "{text}");
    let document = include_str!("../../../Documentation/tutorial-rust.md");
    assert!(document.contains("rank 0 of 2: [1.0, 2.0, 0.5]"), "the tutorial shows other output");
}
