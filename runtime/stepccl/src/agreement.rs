//! Settings that every rank must have alike, because plans follow from them.

use crate::{Config, Error};

/// Settings as `name=value` lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreement(Vec<(String, String)>);

impl Agreement {
    pub fn of(config: &Config, staging_bytes: usize) -> Self {
        let or_chosen = |v: Option<String>| v.unwrap_or_else(|| "chosen".to_owned());
        let pairs = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("buffer_size", staging_bytes.to_string()),
            ("pipeline_depth", or_chosen(config.pipeline_depth.map(|d| d.to_string()))),
            ("page_size", or_chosen(config.page_bytes.map(|p| p.to_string()))),
            ("engine", config.engine.name().to_owned()),
            ("algorithm", or_chosen(config.algorithm.map(|a| a.name().to_owned()))),
            ("single_copy", or_chosen(config.wants_single_copy().map(|s| s.to_string()))),
        ];
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub fn to_note(&self) -> Vec<u8> {
        self.0.iter().map(|(name, value)| format!("{name}={value}\n")).collect::<String>().into()
    }

    fn from_note(note: &[u8]) -> Self {
        let text = String::from_utf8_lossy(note);
        Self(
            text.lines()
                .filter_map(|line| line.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    /// Refuse the first setting that another rank has otherwise.
    pub fn check(&self, communicator: &str, rank: u32, notes: &[Vec<u8>]) -> Result<(), Error> {
        for (peer, note) in (0..).zip(notes).filter(|(peer, _)| *peer != rank) {
            let other = Self::from_note(note);
            for (name, own) in &self.0 {
                let theirs = other.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
                if theirs != Some(own) {
                    return Err(Error::Disagreement {
                        communicator: communicator.to_owned(),
                        rank,
                        peer,
                        setting: name.clone(),
                        own: own.clone(),
                        theirs: theirs.unwrap_or("nothing").to_owned(),
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_differs_is_named_with_both_values() {
        let own = Agreement::of(&Config::default(), 4096);
        let other = Agreement::of(&Config { pipeline_depth: Some(7), ..Config::default() }, 4096);
        assert!(own.check("c", 0, &[own.to_note(), own.to_note()]).is_ok());
        let text = own.check("c", 0, &[own.to_note(), other.to_note()]).unwrap_err().to_string();
        assert!(
            text.contains("pipeline_depth") && text.contains("chosen") && text.contains('7'),
            "{text}"
        );
        assert!(own.check("c", 0, &[own.to_note(), b"\xff=".to_vec()]).is_err());
    }
}
