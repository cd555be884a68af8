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
fn a_bad_value_is_named() {
    let output = config(&[], &[("STEPCCL_PIPELINE_DEPTH", "deep")]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("STEPCCL_PIPELINE_DEPTH") && text.contains("deep"), "{text}");
}
