//! The committed header is the one that the sources give.

use std::path::{Path, PathBuf};

/// Sources in the order in which the header shows them.
const SOURCES: [&str; 9] =
    ["code", "text", "dtype", "op", "comm", "waiting", "started", "work", "group"];

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/stepccl.h")
}

fn generated() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let builder = SOURCES.iter().fold(cbindgen::Builder::new().with_config(config), |b, name| {
        b.with_src(folder.join("src").join(name).with_extension("rs"))
    });
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    // Headings of Rust's documentation are words in C.
    text.replace("// # Safety\n//\n", "// The caller promises:\n")
}

#[test]
fn the_header_is_fresh() {
    let committed = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(committed == generated(), "run `scripts/build-c --header` and look at what changed");
}

#[test]
fn the_header_has_every_function() {
    let text = generated();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut functions = 0;
    for file in std::fs::read_dir(src).unwrap() {
        let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in source.lines().filter(|line| line.contains("extern \"C\" fn ")) {
            let name = line.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            assert!(
                text.contains(&format!(" {name}(")) || text.contains(&format!("*{name}(")),
                "{name}"
            );
            functions += 1;
        }
    }
    let stated = text.matches("// Thread safety: ").count();
    assert_eq!(stated, functions, "each function says which threads may call it");
}

#[test]
#[ignore = "rewrites the header; scripts/build-c --header runs it"]
fn write_the_header() {
    std::fs::write(path(), generated()).unwrap();
}
