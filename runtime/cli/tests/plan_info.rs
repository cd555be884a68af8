//! What `stepccl plan`, `stepccl info` and the help print.

mod common;

use common::{good, run, stepccl};
use serde_json::Value;

#[test]
fn a_plan_shows_figures_candidates_and_steps() {
    let out = good("plan all_reduce --ranks 64 --nodes 8 --bytes 256M");
    for words in [
        "all_reduce of 64 ranks on 8 nodes",
        "  block         256 MiB (67108864 float)",
        "  predicted     ",
        " times the lower bound",
        "  lower bound   ",
        "steps of rank 0 in a round",
    ] {
        assert!(out.contains(words), "{words} is not in: {out}");
    }
    let chosen: Vec<_> = out.lines().filter_map(|line| line.strip_prefix("* ")).collect();
    let [chosen] = chosen[..] else { panic!("{out}") };
    let algorithm = chosen.split_whitespace().next().unwrap();
    assert!(out.contains(&format!("  algorithm     {algorithm}\n")), "{out}");
    for algorithm in ["direct", "two_shot", "ring", "recursive", "tree", "hierarchical"] {
        assert!(out.lines().any(|line| line[2.min(line.len())..].starts_with(algorithm)), "{out}");
    }
    // Nothing of it is chance.
    assert_eq!(out, good("plan all_reduce --ranks 64 --nodes 8 --bytes 256M"));
}

#[test]
fn plans_exist_from_one_rank_to_very_many() {
    assert!(good("plan all_reduce --ranks 1").contains("copy input[0] -> output[0]"));
    for ranks in [2, 7, 1024, 65536] {
        let out = good(&format!("plan all_to_all --ranks {ranks} --bytes 4M"));
        assert!(out.contains(&format!("of {ranks} ranks on 1 node")), "{out}");
        assert!(out.lines().count() < 80, "{out}");
    }
    assert!(good("plan barrier --ranks 8").contains("signal flag 0 to all"));
}

#[test]
fn the_steps_of_any_rank_can_be_shown() {
    let line = "plan broadcast --ranks 8 --root 3 --algorithm tree";
    assert!(good(line).contains("steps of rank 3 in a round"));
    let other = good(&format!("{line} --rank 5"));
    assert!(other.contains("steps of rank 5 in a round"), "{other}");
    assert!(other.contains("rank 5 reads"), "{other}");
}

#[test]
fn what_has_no_plan_is_refused_with_the_reason() {
    for (line, words) in [
        (
            "all_reduce --staging 0",
            &["0 B", "give more", "\n  direct: needs at least 64 bytes"][..],
        ),
        ("all_reduce --nodes 3", &["3 nodes for 2 ranks", "give 1 to 2"]),
        ("all_reduce --ranks 4 --rank 4", &["--rank 4", "must be 0 to 3"]),
        ("broadcast --root 9", &["root 9", "0 to 1"]),
        ("reduce_scatter --algorithm tree", &["tree has no plan", "direct always has one"]),
        ("all_reduce --algorithm best", &["best", "must be one of direct, two_shot"]),
        ("all_reduce --bytes 2T", &["2T", "must be at most 1 TiB"]),
        ("all_reduce --bytes -1", &["-1", "whole number of bytes"]),
        ("all_reduce --staging 2G", &["2G", "must be at most 1 GiB"]),
        ("all_reduce --depth 0", &["'0'", "1..=64"]),
        ("all_reduce --ranks 65537", &["65537", "1..=65536"]),
    ] {
        let run = run(&format!("plan {line}"));
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{line}: {run:?}");
        for word in words {
            assert!(run.err.contains(word), "{line}: {word} is not in: {}", run.err);
        }
    }
}

#[test]
fn info_is_json_with_measured_figures_and_no_secret() {
    let mut command = stepccl("info --json");
    command.env("STEPCCL_SECRET", "do-not-show-this-secret").env("STEPCCL_TIMEOUT", "7");
    let run = common::finish(command);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.out.contains("do-not-show-this-secret"));
    let info: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    let host = &info["engines"][0];
    assert_eq!((&host["name"], &host["usable"]), (&"host".into(), &true.into()));
    assert!(host["measured"]["copy_gb_per_s"].as_f64().unwrap() > 0.0, "{info}");
    let staging = host["measured"]["staging_bytes_a_rank"].as_u64().unwrap();
    assert!(2 * staging <= 8 << 20, "{staging} bytes a rank of two");
    assert_eq!(info["dtypes"].as_array().unwrap().len(), 15);
    assert!(
        info["environment"]
            .as_array()
            .unwrap()
            .contains(&serde_json::json!(["STEPCCL_TIMEOUT", "7"]))
    );
    let text = good("info");
    assert!(text.contains("engine      host    usable"), "{text}");
}

#[test]
fn info_says_why_the_engine_does_not_come_up() {
    let mut command = stepccl("info");
    command.env("STEPCCL_ALGORITHM", "fastest");
    let run = common::finish(command);
    assert!(
        run.out.contains("host    -       STEPCCL_ALGORITHM = fastest: must be one of"),
        "{run:?}"
    );
}

#[test]
fn every_help_has_an_example_that_is_a_valid_command() {
    for (line, examples) in
        [("--help", 3), ("bench --help", 4), ("plan --help", 2), ("info --help", 1)]
    {
        let out = good(line);
        let lines: Vec<_> = out.lines().filter(|line| line.starts_with("  stepccl ")).collect();
        assert_eq!(lines.len(), examples, "{out}");
        for example in lines {
            let words = example.trim().strip_prefix("stepccl ").unwrap();
            if !words.starts_with("bench") {
                good(words);
            }
        }
    }
}

#[test]
fn every_help_fits_a_screen_and_ends_with_examples() {
    let commands = "bench plan info doctor topo status top trace config completions man";
    for command in std::iter::once("").chain(commands.split(' ')) {
        let out = good(&format!("{command} --help"));
        let wide = out.lines().find(|line| line.chars().count() > 120);
        assert_eq!(wide, None, "{command}");
        assert!(
            out.lines().any(|line| line.starts_with("  ") && line.contains("stepccl ")),
            "{out}"
        );
        let bare = out.lines().find(|line| line.starts_with("      --") && !line.contains("  "));
        assert_eq!(bare, None, "{command}: a flag without a word");
    }
}

#[test]
fn the_help_names_every_operation_type_and_reduction() {
    let out = good("bench --help");
    let all = stepccl::Collective::ALL.map(stepccl::Collective::name).into_iter();
    let all = all.chain(stepccl::DType::ALL.map(stepccl::DType::name));
    for name in all.chain(stepccl::ReduceOp::ALL.map(stepccl::ReduceOp::name)) {
        let word = out.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        assert!(word, "{name}: {out}");
    }
}
