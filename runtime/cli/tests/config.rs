//! `stepccl config` as its users run it.

use std::process::{Command, Output};

fn config(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stepccl"))
        .arg("config")
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .expect("stepccl runs")
}

#[test]
fn values_sources_and_slips_are_shown() {
    let set = [
        ("STEPCCL_BUFER_SIZE", "1"),
        ("STEPCCL_SECRET", "nobody may read this"),
        ("STEPCCL_TIMEOUT", "60"),
    ];
    let output = config(&["--json"], &set);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(!text.contains("nobody may read this"), "{text}");
    let shown: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let settings = shown["settings"].as_array().expect("a list");
    let timeout = settings.iter().find(|s| s["name"] == "STEPCCL_TIMEOUT").expect("the timeout");
    assert_eq!((&timeout["value"], &timeout["source"]), (&"60".into(), &"environment".into()));
    assert_eq!(
        shown["warnings"],
        serde_json::json!([
            "STEPCCL_BUFER_SIZE is not a setting; did you mean STEPCCL_BUFFER_SIZE?"
        ])
    );
}

#[test]
fn bad_values_are_named_as_their_users_wrote_them() {
    for (name, value) in [
        ("STEPCCL_BUFFER_SIZE", "1"),
        ("STEPCCL_DMA_CONCURRENCY", "65"),
        ("STEPCCL_DUMP_SIGNAL", "KILL"),
        ("STEPCCL_FLIGHT_RECORDS", "1048577"),
        ("STEPCCL_LINK_TIMEOUT", "1"),
        ("STEPCCL_LOG", "loud"),
        ("STEPCCL_PAGE_SIZE", "0"),
        ("STEPCCL_PIPELINE_DEPTH", "deep"),
        ("STEPCCL_PIPELINE_DEPTH", "65"),
    ] {
        let output = config(&[], &[(name, value)]);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(&format!("{name} = {value}: must be")), "{text}");
    }
}

#[test]
fn a_job_warns_of_a_slip() {
    let output = Command::new(env!("CARGO_BIN_EXE_stepccl"))
        .args(["bench", "all_reduce", "--ranks", "2", "-e", "8", "-n", "1", "-w", "1"])
        .env("STEPCCL_TIMEOUTS", "9")
        .output()
        .expect("stepccl runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let line = "STEPCCL_TIMEOUTS is not a setting; did you mean STEPCCL_TIMEOUT?";
    assert!(text.contains(line), "{text}");
}
