//! Takes the Rust blocks out of documents. A block with a `main` is the program of its document; all
//! others become functions that get a communicator.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const DOCUMENTS: [&str; 2] = ["tutorial-rust", "tutorial-migrating"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    let (mut functions, mut list) = (String::new(), String::new());
    for document in DOCUMENTS {
        let path = format!("{}/../../Documentation/{document}.md", env::var("CARGO_MANIFEST_DIR")?);
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(&path)?;
        for (line, block) in blocks(&text) {
            if block.contains("fn main") {
                fs::write(Path::new(&out).join(format!("{document}.rs")), block)?;
                continue;
            }
            let name = format!("{}_{line}", document.replace('-', "_"));
            writeln!(
                functions,
                "fn {name}(comm: &stepccl::Communicator) -> Result<(), Box<dyn std::error::Error>> {{\n\
                 let _ = comm;\n{block}\nOk(())\n}}"
            )?;
            writeln!(list, "(\"Documentation/{document}.md:{line}\", {name}),")?;
        }
    }
    let list = format!("const BLOCKS: &[(&str, Block)] = &[\n{list}];\n");
    fs::write(Path::new(&out).join("blocks.rs"), functions + &list)?;
    Ok(())
}

/// Each Rust block with the number of its first line.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match &mut open {
            Some((_, block)) if line != "```" => {
                block.push_str(line);
                block.push('\n');
            }
            Some(_) => found.extend(open.take()),
            None if line == "```rust" => open = Some((number + 1, String::new())),
            None => {}
        }
    }
    found
}
