//! `stepccl doctor` as its users run it.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use common::{Run, finish, run, stepccl};
use nix::unistd::Uid;
use serde_json::Value;

const CHECKS: [&str; 15] = [
    "variables",
    "shared memory",
    "descriptors",
    "sockets",
    "single copy",
    "CPUs",
    "NUMA",
    "clock",
    "huge pages",
    "memlock",
    "/dev/shm",
    "namespaces",
    "dma_device",
    "GPUs",
    "RDMA",
];

fn checks(run: &Run) -> Vec<Value> {
    let json: Value = serde_json::from_str(&run.out).unwrap();
    let checks = json["checks"].as_array().unwrap().clone();
    let failed = checks.iter().filter(|check| check["verdict"] == "fail").count();
    assert_eq!(json["failed"], failed);
    assert_eq!(run.code, Some(i32::from(failed > 0)), "{run:?}");
    checks
}

fn check<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    checks.iter().find(|check| check["check"] == name).unwrap()
}

#[test]
fn every_check_answers_with_a_fact_and_a_fix() {
    let json = run("doctor --json --ranks 1");
    let checks = checks(&json);
    assert_eq!(checks.iter().map(|c| c["check"].as_str().unwrap()).collect::<Vec<_>>(), CHECKS);
    for check in &checks {
        let verdict = check["verdict"].as_str().unwrap();
        assert!(["ok", "warn", "fail", "not here"].contains(&verdict), "{check}");
        assert!(!check["fact"].as_str().unwrap().is_empty());
        assert!(verdict == "ok" || verdict == "not here" || check["fix"].is_string(), "{check}");
    }
    // What every test of this project needs.
    for name in ["variables", "shared memory", "sockets"] {
        assert_eq!(check(&checks, name)["verdict"], "ok", "{json:?}");
    }
    let text = run("doctor --ranks 1");
    assert_eq!((text.code, text.err.as_str()), (json.code, ""));
    for name in CHECKS {
        assert!(text.out.contains(&format!("  {name} ")), "{name}: {}", text.out);
    }
}

#[test]
fn a_bad_variable_fails_and_a_slip_warns() {
    let mut command = stepccl("doctor --json");
    command.env("STEPCCL_TIMEOUT", "never");
    let bad = finish(command);
    assert_eq!(bad.code, Some(1));
    let found = checks(&bad);
    let found = check(&found, "variables");
    assert!(found["fact"].as_str().unwrap().contains("STEPCCL_TIMEOUT = never"), "{found}");
    assert!(found["fix"].as_str().unwrap().contains("unset STEPCCL_TIMEOUT"), "{found}");

    let mut command = stepccl("doctor --json");
    command.env("STEPCCL_TIMEOUTS\u{1b}[2J", "1");
    let slip = finish(command);
    assert_eq!(check(&checks(&slip), "variables")["verdict"], "warn");
    assert!(!slip.out.contains("\\u001b["), "{}", slip.out);
}

#[test]
fn few_descriptors_for_many_ranks_fail_with_the_limit_to_raise() {
    let mut command = Command::new("bash");
    let line =
        format!("ulimit -Sn 64; exec {} doctor --json --ranks 20", env!("CARGO_BIN_EXE_stepccl"));
    command.args(["-c", &line]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = finish(command);
    assert_eq!(run.code, Some(1), "{run:?}");
    let checks = checks(&run);
    let found = check(&checks, "descriptors");
    assert_eq!(found["verdict"], "fail");
    assert!(found["fix"].as_str().unwrap().starts_with("ulimit -n "), "{found}");
}

#[test]
fn more_ranks_than_processors_warn() {
    let found = checks(&run("doctor --json --ranks 1024"));
    let cpus = check(&found, "CPUs");
    assert_eq!(cpus["verdict"], "warn", "{cpus}");
    assert!(cpus["fact"].as_str().unwrap().contains("1024 ranks"), "{cpus}");
}

#[test]
fn memory_that_may_not_be_read_is_found_out() {
    if !Uid::effective().is_root() {
        eprintln!("skipped: only root can start a process of another user");
        return;
    }
    // Nobody but root may look into a process whose program its user cannot read.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let program = folder.path().join("stepccl");
    std::fs::copy(env!("CARGO_BIN_EXE_stepccl"), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o711)).unwrap();
    let mut command = Command::new(&program);
    command.args(["doctor", "--json"]).uid(65534).gid(65534);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = finish(command);
    let checks = checks(&run);
    let found = check(&checks, "single copy");
    assert_eq!(found["verdict"], "warn", "{found}");
    assert!(found["fact"].as_str().unwrap().contains("copied twice"), "{found}");
}

#[test]
fn the_variable_of_its_own_child_is_not_for_users() {
    let mut command = stepccl("doctor");
    command.env("STEPCCL_DOCTOR_PEEK", "x");
    let run = finish(command);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.contains("unset it"), "{}", run.err);
}
