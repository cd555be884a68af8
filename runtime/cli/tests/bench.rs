//! What `stepccl bench` prints, and that results are right for everything it can be asked for.

mod common;

use std::process::{Command, Stdio};

use common::{finish, good, run};
use serde_json::Value;

const OPERATIONS: [&str; 11] = [
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "gather",
    "scatter",
    "barrier",
    "sendrecv",
    "ping_pong",
];

fn objects(line: &str) -> Vec<Value> {
    good(line).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_table_has_the_columns_of_nccl_tests() {
    let out = good("bench all_reduce -b 8 -e 4K -f 8 -n 3 -w 1");
    let lines: Vec<_> = out.lines().collect();
    let heads = lines.iter().find(|line| line.contains("redop")).unwrap();
    let heads: Vec<_> = heads.trim_start_matches('#').split_whitespace().collect();
    let form = ["time", "algbw", "busbw", "#wrong"];
    assert_eq!(heads, [&["size", "count", "type", "redop", "root"], &form[..], &form].concat());
    let rows: Vec<Vec<_>> = lines
        .iter()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["8", "64", "512", "4096"]);
    for row in rows {
        assert_eq!(row.len(), 13, "{row:?}");
        assert_eq!(row[2..5], ["float", "sum", "-1"]);
        assert_eq!(row[1].parse::<usize>().unwrap() * 4, row[0].parse::<usize>().unwrap());
        for time in [row[5], row[9]] {
            assert!(time.parse::<f64>().unwrap() > 0.0, "{row:?}");
        }
        assert_eq!((row[8], row[12]), ("0", "0"));
    }
    assert!(lines.contains(&"# wrong elements: 0"), "{out}");
    assert!(lines.iter().any(|line| line.starts_with("# Avg bus bandwidth: ")), "{out}");
}

#[test]
fn rates_follow_from_time_and_size() {
    let rows = objects("bench all_gather --ranks 3 -b 12K -e 12K -n 3 --json");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(
        (&row["bytes"], &row["count"], &row["ranks"]),
        (&12288.into(), &1024.into(), &3.into())
    );
    assert_eq!((&row["op"], &row["root"]), (&"none".into(), &(-1).into()));
    for form in ["out_of_place", "in_place"] {
        let figure = |name: &str| row[form][name].as_f64().unwrap();
        let algorithm = 12288.0 / figure("time_us") / 1e3;
        assert!((figure("algbw_gb_per_s") / algorithm - 1.0).abs() < 1e-9);
        assert!((figure("busbw_gb_per_s") / algorithm - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(row[form]["wrong"], 0);
    }
    assert_eq!(row["time_us"], row["out_of_place"]["time_us"]);
}

#[test]
fn a_group_stands_beside_one_call_of_its_size() {
    for ranks in [1, 2, 3] {
        let line =
            format!("bench group --members 7 --ranks {ranks} -b 280 -e 8K -f 4 -d all -o all");
        let rows = objects(&format!("{line} -n 2 -w 1 --json"));
        assert!(rows.len() > PAIRS, "{}", rows.len());
        for row in rows {
            let (group, one) = (&row["group"], &row["one"]);
            assert_eq!((&group["wrong"], &one["wrong"]), (&0.into(), &0.into()), "{row}");
            let time = |form: &Value| form["time_us"].as_f64().unwrap();
            let ratio = time(group) / time(one).max(1e-3);
            assert!((row["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9, "{row}");
            assert_eq!(row["bytes"].as_u64().unwrap() % 7, 0);
        }
    }
    let out = good("bench group --members 100 -b 64K -e 64K -n 2");
    assert!(out.contains("in a group") && out.contains("as one"), "{out}");
    assert!(out.contains("# 100 all_reduces in a group"), "{out}");
    let bad = run("bench group -b 8 -e 1K");
    assert_eq!((bad.code, bad.out.as_str()), (Some(2), ""));
    assert!(bad.err.contains("--members 1000"), "{}", bad.err);
}

#[test]
fn progress_is_for_terminals_alone() {
    let line = "bench all_reduce -b 1K -e 2K -n 2 -w 1";
    assert_eq!(run(line).err, "");
    // Gives a program a terminal, and copies what it writes there.
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{} {line}", env!("CARGO_BIN_EXE_stepccl")), "/dev/null"]);
    script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: no script here");
        return;
    }
    let shown = finish(script);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for size in ["1 KiB (1 of 2)", "2 KiB (2 of 2)"] {
        assert!(shown.out.contains(&format!("\r\u{1b}[Kall_reduce float sum {size}")), "{shown:?}");
    }
    let last = shown.out.lines().last().unwrap();
    assert!(last.contains("# Avg bus bandwidth"), "{shown:?}");
}

/// Element types; and with their operations: 6 of 6 floats, 9 of 6 integers, 7 of bool, 4 of 2
/// complex numbers.
const TYPES: usize = 15;
const PAIRS: usize = 6 * 6 + 6 * 9 + 7 + 2 * 4;

#[test]
fn every_operation_type_and_reduction_is_right() {
    for ranks in [2, 3] {
        for operation in OPERATIONS {
            let root = ranks - 1;
            let line = format!(
                "bench {operation} --ranks {ranks} -b 100 -e 2000 -i 950 -d all -o all -r {root} -n 1 -w 1 --json"
            );
            let rows = objects(&line);
            let reduces = matches!(operation, "all_reduce" | "reduce" | "reduce_scatter");
            let cases = if reduces { PAIRS } else { TYPES };
            assert_eq!(rows.len(), if operation == "barrier" { 1 } else { cases * 3 }, "{line}");
            for row in rows {
                assert_eq!(row["out_of_place"]["wrong"], 0, "{row}");
                let alone =
                    matches!(operation, "all_to_all" | "barrier" | "sendrecv" | "ping_pong");
                assert_eq!(row["in_place"].is_null(), alone, "{row}");
                if !alone {
                    assert_eq!(row["in_place"]["wrong"], 0, "{row}");
                }
            }
        }
    }
}

#[test]
fn one_rank_and_eight_ranks_work() {
    for (line, bus) in [("--ranks 1", 0.0), ("--ranks 8", 1.75)] {
        for row in objects(&format!("bench all_reduce {line} -b 64 -e 64 -n 1 -w 0 --json")) {
            let rate = |name: &str| row["out_of_place"][name].as_f64().unwrap();
            assert!((rate("busbw_gb_per_s") - bus * rate("algbw_gb_per_s")).abs() < 1e-9, "{row}");
            assert_eq!(row["out_of_place"]["wrong"], 0);
        }
    }
}

#[test]
fn time_over_ranks_can_be_chosen_and_the_check_left_out() {
    for average in 0..4 {
        let rows = objects(&format!("bench barrier -a {average} -c 0 -n 2 --json"));
        assert!(rows[0]["time_us"].as_f64().unwrap() > 0.0, "{rows:?}");
        assert!(rows[0]["out_of_place"]["wrong"].is_null(), "{rows:?}");
    }
    assert!(good("bench barrier -c 0 -n 2").contains("# wrong elements: not checked"));
}

#[test]
fn percentiles_enclose_one_another() {
    for line in ["all_reduce -b 8 -e 64", "ping_pong -b 1K -e 1K", "barrier -a 0"] {
        for row in objects(&format!("bench {line} -n 50 --percentiles --json")) {
            for form in ["out_of_place", "in_place"] {
                if row[form].is_null() {
                    continue;
                }
                let at = |name: &str| row[form]["percentiles_us"][name].as_f64().unwrap();
                let order = ["min", "p50", "p90", "p99", "max"].map(at);
                assert!(order[0] > 0.0 && order.is_sorted(), "{row}");
                let mean = row[form]["time_us"].as_f64().unwrap();
                assert!(mean >= order[0] * 0.99 && mean <= order[4] * 1.01, "{row}");
            }
        }
    }
    let out = good("bench all_reduce -b 8 -e 8 -n 5 --percentiles");
    assert!(out.contains("#  out-of-place calls in us: min "), "{out}");
    assert!(out.contains("#  in-place calls in us: min "), "{out}");
    let plain = objects("bench barrier -n 5 --json");
    assert!(plain[0]["out_of_place"]["percentiles_us"].is_null(), "{plain:?}");
}

#[test]
fn the_fields_of_an_object_are_these() {
    let rows = objects("bench all_reduce -b 8 -e 8 -n 2 --percentiles --json");
    let names =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let mut row = names(&rows[0]);
    row.sort();
    let all = [
        "bytes",
        "collective",
        "count",
        "dtype",
        "in_place",
        "op",
        "out_of_place",
        "ranks",
        "root",
        "time_us",
    ];
    assert_eq!(row, all);
    let mut form = names(&rows[0]["in_place"]);
    form.sort();
    let all = ["algbw_gb_per_s", "busbw_gb_per_s", "percentiles_us", "time_us", "wrong"];
    assert_eq!(form, all);
}

#[test]
fn bad_arguments_name_value_and_rule() {
    let at_least_2 = "must be a whole number, at least 2";
    for (line, words) in [
        ("all_reduced", &["all_reduced", "must be one of all_reduce, broadcast"][..]),
        ("sendrecv --ranks 1", &["sendrecv between 1 rank", "at least 2"]),
        ("ping_pong --ranks 1", &["ping_pong between 1 rank", "at least 2"]),
        ("broadcast -b -1K", &["-1K", "must be a whole number of bytes"]),
        ("broadcast -b 1Q", &["1Q", "must be a whole number of bytes"]),
        ("broadcast -e 99999999999999999999", &["99999999999999999999", "below 2^64"]),
        ("broadcast -b 8K -e 1K", &["8192", "1024", "the smallest first"]),
        ("broadcast -e 4", &["--minbytes 8", "--maxbytes 4"]),
        ("broadcast -f 1", &["'1'", at_least_2]),
        ("broadcast -f -2", &["'-2'", at_least_2]),
        ("broadcast -i 0", &["'0'", "must be at least 1 byte"]),
        ("broadcast -i 8 -f 2", &["--stepbytes", "cannot be used with"]),
        ("broadcast -n 0", &["'0'", "1..="]),
        ("broadcast -n -1", &["'-1'", "1..="]),
        ("broadcast -w 99999999999", &["99999999999", "0..="]),
        ("broadcast -a 4", &["'4'", "0..=3"]),
        ("broadcast -c 2", &["'2'", "0..=1"]),
        ("broadcast -T 0", &["'0'", "above 0"]),
        ("broadcast -T nan", &["nan", "number of seconds"]),
        ("broadcast -T 1e300", &["1e300", "at most"]),
        ("broadcast -d float16", &["float16", "must be one of float, double"]),
        ("broadcast -o product", &["product", "must be one of sum, prod, max"]),
        (
            "all_reduce -o band",
            &["--op band", "float elements", "sum, prod, max, min, avg, mulsum"],
        ),
        ("broadcast -r 2", &["--root 2", "must be 0 to 1"]),
        ("broadcast --ranks 0", &["'0'", "1..=1024"]),
        ("broadcast --ranks 1025", &["'1025'", "1..=1024"]),
        ("all_reduce -e 1T", &["1099511627776", "4.0 TiB", "are free; give a smaller -e"]),
        ("all_reduce -i 1 -e 16000000T", &["about", "are free"]),
    ] {
        let run = run(&format!("bench {line}"));
        assert_eq!(run.code, Some(2), "{line}: {run:?}");
        assert_eq!(run.out, "", "{line}");
        for word in words {
            assert!(run.err.contains(word), "{line}: {word} is not in: {}", run.err);
        }
    }
}

#[test]
fn bad_settings_are_told_once_by_name() {
    for (name, value, rule) in [
        ("STEPCCL_ALGORITHM", "fastest", "fastest: must be one of direct"),
        ("STEPCCL_BUFFER_SIZE", "1", "1: must be from"),
        ("STEPCCL_SECRET", "short", "has 5 bytes; 16 to"),
    ] {
        let mut command = common::stepccl("bench all_reduce -e 64");
        command.env(name, value);
        let run = common::finish(command);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert_eq!(run.err.lines().count(), 1, "{run:?}");
        assert!(run.err.contains(rule), "{run:?}");
    }
}
