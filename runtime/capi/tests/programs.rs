//! C programs that are compiled against the header and run as two processes.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const RANKS: u32 = 2;
/// Far above what they take.
const LIMIT: Duration = Duration::from_secs(120);

/// How a program is linked.
#[derive(Clone, Copy, Debug)]
enum Linked {
    Shared,
    Static,
}

/// What cargo built, beside this test.
fn built(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    places.iter().find(|path| path.exists()).unwrap_or_else(|| panic!("no {places:?}")).clone()
}

fn compile(source: &Path, folder: &Path, linked: Linked) -> PathBuf {
    let program = folder.join("program");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-pthread"])
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
    match linked {
        Linked::Shared => {
            let library = folder.join("libstepccl.so.0");
            std::os::unix::fs::symlink(built("libstepccl_capi.so"), &library).unwrap();
            std::os::unix::fs::symlink(&library, folder.join("libstepccl.so")).unwrap();
            cc.arg(format!("-Wl,-rpath,{}", folder.display()));
            cc.arg("-L").arg(folder).arg("-lstepccl");
        }
        Linked::Static => {
            cc.arg(built("libstepccl_capi.a")).args(["-lm", "-ldl"]);
        }
    }
    let output = cc.output().expect("the tests of the C interface need `cc`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// A process that is ended with the test.
struct Rank {
    process: Child,
    log: PathBuf,
}

impl Drop for Rank {
    fn drop(&mut self) {
        // It has ended where all went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(program: &Path, folder: &Path, store: &str) {
    let start = |rank: u32| {
        let log = folder.join(format!("log-{rank}"));
        let file = File::create(&log).unwrap();
        let mut command = Command::new(program);
        command.arg(store).arg(rank.to_string()).arg(RANKS.to_string());
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Rank { process: command.spawn().unwrap(), log }
    };
    let mut ranks: Vec<_> = (0..RANKS).map(start).collect();
    let deadline = Instant::now() + LIMIT;
    for rank in &mut ranks {
        let status = loop {
            match rank.process.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if Instant::now() > deadline => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let log = fs::read_to_string(&rank.log).unwrap();
        assert!(status.is_some_and(|s| s.success()), "{status:?} on {store}:\n{log}");
        assert!(log.ends_with("ok\n"), "{log}");
    }
}

fn test_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c")
}

#[test]
fn every_function_in_two_processes_over_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(&test_program(), folder.path(), Linked::Shared);
    run(&program, folder.path(), &format!("file:{}/store", folder.path().display()));
}

#[test]
fn every_function_in_two_processes_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(&test_program(), folder.path(), Linked::Static);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    run(&program, folder.path(), &format!("tcp:{free}"));
}

/// The C programs of a document.
fn examples(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation").join(document);
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("```c\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_examples_of_the_documents_run() {
    for document in ["c-guide.md", "tutorial-migrating.md"] {
        let examples = examples(document);
        assert!(!examples.is_empty(), "{document} has no program");
        for example in examples {
            let folder = tempfile::tempdir().unwrap();
            let source = folder.path().join("example.c");
            fs::write(&source, example).unwrap();
            let program = compile(&source, folder.path(), Linked::Shared);
            run(&program, folder.path(), &format!("file:{}/store", folder.path().display()));
        }
    }
}
