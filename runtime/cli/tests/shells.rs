//! Completions as shells load them, and manual pages as `man` shows them.

mod common;

use std::process::{Command, Stdio};

use common::{Run, finish, good, run};

/// Whether a program can be started here; says so where it cannot.
fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    // Not all know the flag; all that are there start.
    let there = command.status().is_ok();
    if !there {
        eprintln!("skipped: no {program} here");
    }
    there
}

fn finish_piped(mut command: Command) -> Run {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command)
}

/// Names of the commands, as the help lists them.
fn commands() -> Vec<String> {
    let help = good("--help");
    let list = help.split("Commands:\n").nth(1).unwrap();
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

/// What bash offers for the last of `words`.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stepccl.bash");
    std::fs::write(&file, good("completions bash")).unwrap();
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    let [.., before, last] = &quoted[..] else { panic!("{words:?}") };
    let script = format!(
        "set -e; source '{}'; f=$(complete -p stepccl | sed 's/.*-F \\([^ ]*\\).*/\\1/'); \
         COMP_WORDS=({}); COMP_CWORD={}; $f stepccl {last} {before}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file.display(),
        quoted.join(" "),
        words.len() - 1,
    );
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-c", &script]);
    let run = finish_piped(command);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    run.out.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    if !has("bash") {
        return;
    }
    assert_eq!(offered(&["stepccl", "to"]), ["topo", "top"]);
    let all = offered(&["stepccl", ""]);
    for name in commands() {
        assert!(all.contains(&name), "{name}: {all:?}");
    }
    assert_eq!(offered(&["stepccl", "bench", "all_r"]), ["all_reduce"]);
    assert_eq!(offered(&["stepccl", "bench", "--perc"]), ["--percentiles"]);
    assert_eq!(offered(&["stepccl", "bench", "all_reduce", "-d", "bf"]), ["bfloat16"]);
    assert_eq!(
        offered(&["stepccl", "plan", "broadcast", "--algorithm", "r"]),
        ["ring", "recursive"]
    );
    assert_eq!(offered(&["stepccl", "completions", "z"]), ["zsh"]);
}

#[test]
fn zsh_and_fish_can_parse_theirs() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, only_parse) in [("zsh", "-n"), ("fish", "--no-execute")] {
        let text = good(&format!("completions {shell}"));
        for name in commands() {
            assert!(text.contains(&name), "{shell}: {name}");
        }
        let file = folder.path().join(shell);
        std::fs::write(&file, text).unwrap();
        if has(shell) {
            let mut command = Command::new(shell);
            command.arg(only_parse).arg(&file);
            let run = finish_piped(command);
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
        }
    }
    let run = run("completions tcsh");
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("bash, zsh, fish"), "{}", run.err);
}

#[test]
fn every_command_has_a_page_that_man_shows_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("made/for/it");
    let listed = good(&format!("man --out {}", out.display()));
    let mut pages: Vec<_> = listed.lines().map(std::path::PathBuf::from).collect();
    let names = commands();
    assert_eq!(pages.len(), 1 + names.len() - usize::from(names.contains(&"help".to_owned())));
    pages.sort();
    let (man, mandoc) = (has("man"), has("mandoc"));
    for page in &pages {
        let source = std::fs::read_to_string(page).unwrap();
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH NOTES"] {
            assert!(source.contains(section), "{}: {section}", page.display());
        }
        if man {
            let mut command = Command::new("man");
            command.args(["--warnings=all", "-l"]).arg(page).env("MANPAGER", "cat");
            let run = finish_piped(command);
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", page.display());
            let shown = page.file_stem().unwrap().to_str().unwrap();
            assert!(run.out.contains(&format!("{shown}(1)")), "{}", run.out);
        }
        if mandoc {
            let mut command = Command::new("mandoc");
            command.args(["-T", "lint", "-W", "error"]).arg(page);
            let run = finish_piped(command);
            assert_eq!(run.code, Some(0), "{}: {run:?}", page.display());
        }
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let run = run("man --out /dev/null/pages");
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.contains("/dev/null/pages") && run.err.contains("--out"), "{}", run.err);
}
