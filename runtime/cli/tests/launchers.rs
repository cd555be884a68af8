//! Ranks that another launcher started, as its variables tell.

mod common;

use std::io::Read;
use std::net::TcpListener;
use std::process::Command;

use common::{LIMIT, Process, stepccl};

const LAUNCHER_VARIABLES: [&str; 5] =
    ["RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];

/// A rank with the variables of a launcher.
fn rank(folder: &tempfile::TempDir, line: &str, variables: &[(&str, String)]) -> Command {
    let mut command = stepccl(line);
    for name in LAUNCHER_VARIABLES {
        command.env_remove(name);
    }
    command.env("TMPDIR", folder.path());
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    command
}

/// Run both ranks; the output of rank 0.
fn two(variables: impl Fn(u32) -> Vec<(&'static str, String)>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let line = "bench all_reduce -b 64 -e 64 -n 3 --json";
    let mut ranks = [0, 1].map(|number| Process::start(rank(&folder, line, &variables(number))));
    for process in &mut ranks {
        let code = process.end(LIMIT).code();
        let mut errors = String::new();
        process.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((code, errors.as_str()), (Some(0), ""));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something is left");
    let [mut first, mut second] = ranks;
    let mut output = String::new();
    second.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(output, "", "only rank 0 reports");
    first.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    output
}

fn is_right(output: &str) {
    let row: serde_json::Value = serde_json::from_str(output).unwrap();
    assert_eq!((&row["ranks"], &row["bytes"]), (&2.into(), &64.into()), "{row}");
    assert_eq!(row["out_of_place"]["wrong"], 0, "{row}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn of(
    pairs: &[(&'static str, &str)],
    rank: u32,
    ranks: [&'static str; 2],
) -> Vec<(&'static str, String)> {
    let own = ranks.map(|name| (name, rank.to_string()));
    pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).chain(own).collect()
}

#[test]
fn torch_variables_meet_at_the_address() {
    let port = free_port().to_string();
    let pairs = [("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port)];
    is_right(&two(|rank| of(&pairs, rank, ["RANK", "LOCAL_RANK"])));
}

#[test]
fn ranks_of_torchrun_leave_its_port_alone() {
    // The agent serves there already.
    let agent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = agent.local_addr().unwrap().port().to_string();
    let pairs = [
        ("WORLD_SIZE", "2"),
        ("LOCAL_WORLD_SIZE", "2"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", &port),
        ("TORCHELASTIC_USE_AGENT_STORE", "True"),
    ];
    is_right(&two(|rank| of(&pairs, rank, ["RANK", "LOCAL_RANK"])));
}

#[test]
fn ranks_of_open_mpi_meet_in_a_folder_of_their_job() {
    let pairs = [
        ("OMPI_COMM_WORLD_SIZE", "2"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ("PMIX_NAMESPACE", "prterun-host-17@1"),
    ];
    let own = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"];
    is_right(&two(|rank| of(&pairs, rank, own)));
}

#[test]
fn ranks_of_hydra_meet_in_a_folder_of_their_launcher() {
    let pairs = [("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")];
    is_right(&two(|rank| of(&pairs, rank, ["PMI_RANK", "MPI_LOCALRANKID"])));
}

#[test]
fn ranks_of_slurm_meet_on_one_node_and_at_the_launching_node() {
    let step = std::process::id().to_string();
    let pairs = [("SLURM_NTASKS", "2"), ("SLURM_JOB_ID", "5"), ("SLURM_STEP_ID", &*step)];
    let own = ["SLURM_PROCID", "SLURM_LOCALID"];
    for more in [("SLURM_NNODES", "1"), ("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1")] {
        let pairs = [&pairs[..], &[more]].concat();
        is_right(&two(|rank| of(&pairs, rank, own)));
    }
}

#[test]
fn bad_variables_are_named_and_here_leaves_them_out() {
    let folder = tempfile::tempdir().unwrap();
    let set = |name, value: &str| [("WORLD_SIZE", "2".to_owned()), (name, value.to_owned())];
    let run = common::finish(rank(&folder, "bench barrier -n 1", &set("RANK", "first")));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("RANK=first") && run.err.contains("--here"), "{run:?}");
    let run = common::finish(rank(&folder, "bench barrier -n 1", &set("RANK", "0")));
    assert!(run.err.contains("MASTER_ADDR"), "{run:?}");
    let run = common::finish(rank(&folder, "bench barrier -n 1 --here", &set("RANK", "first")));
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_rank_that_dies_ends_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port().to_string();
    let pairs = [("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port)];
    let line = "bench all_reduce -b 64K -e 64K -n 4000000000";
    let start =
        |number| Process::start(rank(&folder, line, &of(&pairs, number, ["RANK", "LOCAL_RANK"])));
    let (mut first, second) = (start(0), start(1));
    let mut output = first.0.stdout.take().unwrap();
    // Its header is written when both have met.
    output.read_exact(&mut [0; 9]).unwrap();
    drop(second);
    assert_eq!(first.end(LIMIT).code(), Some(1));
    let mut errors = String::new();
    first.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(errors.contains("rank 0") && errors.contains("lost rank 1"), "{errors}");
}
