//! Bounded reading of `/sys`, or of a copy of one. Whatever is odd there is as if it were absent.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest file that is read, in bytes; the kernel's own are at most a page.
const LONGEST: u64 = 4096;
/// Most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 8192;
/// Longest name of an entry, in bytes.
const LONGEST_NAME: usize = 64;

/// The root of a tree, in its only true name.
#[derive(Debug)]
pub(crate) struct Sysfs {
    root: PathBuf,
}

impl Sysfs {
    /// `None` where there is no such folder.
    pub fn open(root: &Path) -> Option<Self> {
        let root = root.canonicalize().ok().filter(|root| root.is_dir())?;
        Some(Self { root })
    }

    /// Where `path` below the root really is, without the root; `None` where it is not there, or
    /// a link leads out of the tree.
    pub fn resolve(&self, path: &str) -> Option<String> {
        let real = self.root.join(path).canonicalize().ok()?;
        Some(real.strip_prefix(&self.root).ok()?.to_str()?.to_owned())
    }

    /// Whether `path` is there, within the tree.
    pub fn exists(&self, path: &str) -> bool {
        self.resolve(path).is_some()
    }

    /// The text of a file without white space at its ends; `None` where there is none to be had.
    pub fn text(&self, path: &str) -> Option<String> {
        let path = self.root.join(self.resolve(path)?);
        // A pipe would wait for a writer.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut text = Vec::new();
        File::open(path).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
        Some(String::from_utf8(text).ok()?.trim().to_owned())
    }

    /// The number that a file holds: decimal, or hexadecimal after `0x`.
    pub fn number(&self, path: &str) -> Option<i64> {
        let text = self.text(path)?;
        match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// Names in a folder, in order; those that no device has are left out.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Some(path) = self.resolve(path) else { return Vec::new() };
        let Ok(entries) = fs::read_dir(self.root.join(path)) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .take(MOST_ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.len() <= LONGEST_NAME)
            .filter(|name| name.bytes().all(|b| b.is_ascii_graphic()))
            .collect();
        names.sort();
        names
    }
}
