//! The commands that documents show in blocks of `sh` run as they stand there.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{finish, stepccl};

/// Each block with its document and the number of its first line.
fn blocks() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut open: Option<(usize, String)> = None;
        for (number, line) in (1..).zip(text.lines()) {
            match &mut open {
                Some((_, block)) if line != "```" => *block += &format!("{line}\n"),
                Some(_) => {
                    let (first, block) = open.take().unwrap();
                    found.push((format!("{}:{first}", path.display()), block));
                }
                None if line == "```sh" => open = Some((number + 1, String::new())),
                None => {}
            }
        }
        assert!(open.is_none(), "{}: a block does not end", path.display());
    }
    found
}

#[test]
fn each_block_of_commands_runs() {
    let blocks = blocks();
    assert!(!blocks.is_empty());
    let folder = Path::new(env!("CARGO_BIN_EXE_stepccl")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    // Its environment has no settings of the caller.
    let clean = stepccl("");
    for (place, block) in blocks {
        let work = tempfile::tempdir().unwrap();
        let mut command = Command::new("bash");
        for (name, value) in clean.get_envs() {
            if value.is_none() {
                command.env_remove(name);
            }
        }
        command
            .args(["-euo", "pipefail", "-c", &block])
            .current_dir(work.path())
            .env("PATH", format!("{}:{path}", folder.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let run = finish(command);
        assert_eq!(run.code, Some(0), "{place}: {run:?}");
        let left: Vec<_> = std::fs::read_dir(work.path()).unwrap().collect();
        assert!(left.is_empty(), "{place} leaves {left:?}");
    }
}
