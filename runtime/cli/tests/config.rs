//! `stepccl config` as its users run it.

mod common;

use std::process::Output;

fn config(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    common::stepccl("config")
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
fn every_bad_value_is_told_beside_the_good_ones() {
    let set = [
        ("STEPCCL_ALGORITHM", "fastest"),
        ("STEPCCL_ENGINE", "tcp"),
        ("STEPCCL_LOG_FILE", "/nonexistent/log"),
        ("STEPCCL_SECRET", "nobody reads it"),
        ("STEPCCL_SOCKET_IFNAME", "=nothing\u{1b}[2J"),
        ("STEPCCL_TIMEOUT", "never"),
        ("stepccl_log", "info"),
    ];
    let output = config(&[], &set);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.lines().count(), 5, "{told}");
    for name in ["ALGORITHM", "LOG_FILE", "SECRET", "SOCKET_IFNAME", "TIMEOUT"] {
        assert!(told.contains(&format!("stepccl: STEPCCL_{name} = ")), "{told}");
    }
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.lines().any(|l| l.starts_with("STEPCCL_ENGINE") && l.ends_with("tcp")));
    assert!(shown.contains("stepccl_log is not a setting; did you mean STEPCCL_LOG?"), "{shown}");
    for text in [told, shown] {
        assert!(!text.contains("nobody reads it") && !text.contains('\u{1b}'), "{text}");
    }
    let output = config(&["--json"], &set);
    assert_eq!(output.status.code(), Some(1));
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(shown["errors"].as_array().map(Vec::len), Some(5), "{shown}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_job_warns_of_a_slip() {
    let output = common::stepccl("bench all_reduce --ranks 2 -e 8 -n 1 -w 1")
        .env("STEPCCL_TIMEOUTS", "9")
        .output()
        .expect("stepccl runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let line = "STEPCCL_TIMEOUTS is not a setting; did you mean STEPCCL_TIMEOUT?";
    assert!(text.contains(line), "{text}");
}
