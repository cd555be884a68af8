//! Names in the C header, read from its text.

use std::collections::BTreeMap;

/// What the header declares.
pub struct Header {
    /// Structs and their fields in order.
    pub structs: BTreeMap<String, Vec<String>>,
    /// Enumerators and macros that are numbers.
    pub numbers: Vec<String>,
    /// Macros that are strings, without the quotes.
    pub strings: BTreeMap<String, String>,
    documentation: Vec<(Vec<String>, String)>,
}

/// Macros that are no fact of their own: the guard, and what the test calls by hand.
const NOT_NUMBERS: [&str; 2] = ["_UAPI_DMA_ENGINE_H", "DMA_ENGINE_ADDRESS"];

impl Header {
    /// Read and split the header. Panics on a line it does not understand, so that nothing new
    /// passes unseen.
    pub fn read() -> Self {
        let text = include_str!("../../include/dma_engine.h").replace("\\\n", " ");
        let mut header = Self {
            structs: BTreeMap::new(),
            numbers: Vec::new(),
            strings: BTreeMap::new(),
            documentation: Vec::new(),
        };
        let mut comment = String::new();
        let mut rest = text.as_str();
        while let Some(line) = rest.lines().next() {
            if line.starts_with("/*") {
                let end = rest.find("*/").expect("a comment ends") + 2;
                comment = rest[..end].to_owned();
                rest = rest[end..].trim_start();
                continue;
            }
            let block = line.ends_with('{');
            let end = if block { rest.find("};").expect("a block ends") + 2 } else { line.len() };
            let names = header.declaration(&rest[..end]);
            if !names.is_empty() {
                header.documentation.push((names, std::mem::take(&mut comment)));
            }
            rest = rest[end..].trim_start();
        }
        header
    }

    /// Enter one declaration; returns the names that need documentation.
    fn declaration(&mut self, text: &str) -> Vec<String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let body = || text[text.find('{').expect("a block") + 1..text.len() - 2].trim();
        match words[..] {
            ["struct", name, "{", ..] => {
                let fields: Vec<String> = body().split(';').filter_map(field).collect();
                let names = fields.iter().map(|field| format!("@{field}:"));
                let names = names.chain([format!("struct {name} - ")]).collect();
                assert!(self.structs.insert(name.into(), fields).is_none(), "{name} twice");
                names
            }
            ["enum", name, "{", ..] => {
                let constants: Vec<String> = body().split(',').map(enumerator).collect();
                let names = constants.iter().map(|constant| format!("@{constant}:"));
                let names = names.chain([format!("enum {name} - ")]).collect();
                self.numbers.extend(constants);
                names
            }
            ["#define", name, ..] => {
                let name = name.split('(').next().expect("a first part");
                if let Some(value) = text.split('"').nth(1) {
                    self.strings.insert(name.into(), value.into());
                } else if !NOT_NUMBERS.contains(&name) {
                    self.numbers.push(name.into());
                }
                let command = text.contains("_IO(");
                if command || name.starts_with('_') {
                    Vec::new()
                } else {
                    vec![format!("define {name} - ")]
                }
            }
            ["#ifndef" | "#include" | "#endif", ..] => Vec::new(),
            _ => panic!("not understood: {text}"),
        }
    }

    /// Names without kernel-doc, and commands that the documentation of no struct names.
    pub fn undocumented(&self) -> Vec<String> {
        let missing = self.documentation.iter().flat_map(|(names, comment)| {
            let flat = comment.replace("\n *", " ");
            let flat = flat.split_whitespace().collect::<Vec<_>>().join(" ");
            names.iter().filter(move |name| !flat.contains(name.trim_end())).cloned()
        });
        let commands = self.numbers.iter().filter_map(|name| name.strip_prefix("DMA_ENGINE_CMD_"));
        let unnamed = commands.map(|name| format!("ioctl(DMA_ENGINE_{name})")).filter(|wanted| {
            !self.documentation.iter().any(|(_, comment)| comment.contains(wanted.as_str()))
        });
        missing.chain(unnamed).collect()
    }
}

/// Types whose size and alignment is the same for every caller. A plain `__u64` is not: it is
/// aligned to 4 bytes on 32-bit x86.
const FIXED: [&str; 6] = ["__u8", "__u16", "__u32", "__s32", "__aligned_u64", "struct"];

/// Name of a field: the last word, without its array.
fn field(declaration: &str) -> Option<String> {
    let kind = declaration.split_whitespace().next()?;
    assert!(FIXED.contains(&kind), "{declaration}: not of a fixed-width type");
    let last = declaration.split_whitespace().last()?;
    Some(last.split('[').next()?.to_owned())
}

/// Name of an enumerator.
fn enumerator(declaration: &str) -> String {
    declaration.split('=').next().unwrap_or_default().trim().to_owned()
}
