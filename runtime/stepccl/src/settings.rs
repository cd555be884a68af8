//! What each setting is, where that comes from, and which variables are none.

use crate::environment::{VARIABLES, apply, is_unknown, variables_of_process};
use crate::nearest::nearest;
use crate::{Config, Error};

/// Who chose the value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody: the library's default.
    Default,
    /// The variable of the process.
    Environment,
    /// The program, in its [`Config`].
    Caller,
}

impl Source {
    /// Name as users read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Environment => "environment",
            Self::Caller => "caller",
        }
    }
}

/// A setting that a variable stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of its variable.
    pub name: &'static str,
    /// Its value; the default's description where it is chosen later, `(hidden)` for a secret.
    pub value: String,
    /// Who chose the value.
    pub source: Source,
    /// What its variable may be set to.
    pub values: &'static str,
    /// What it is.
    pub meaning: &'static str,
}

impl Config {
    /// Every setting with its value and who chose it, by name of its variable.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] naming a variable of the process with a bad value.
    pub fn settings(&self) -> Result<Vec<Setting>, Error> {
        settings(self, &variables_of_process())
    }
}

/// A line for each `STEPCCL_` variable of the process that is not a setting, with the nearest name.
/// Such a variable is a slip of the pen, or another program's: it has no effect.
#[must_use]
pub fn unknown_variables() -> Vec<String> {
    unknown(&variables_of_process())
}

pub(crate) fn settings(
    config: &Config,
    variables: &[(String, String)],
) -> Result<Vec<Setting>, Error> {
    let mut environment = Config::default();
    apply(&mut environment, variables)?;
    let setting = |v: &'static crate::environment::Variable| {
        let value = (v.get)(config);
        let source = if value != (v.get)(&environment) {
            Source::Caller
        } else if variables.iter().any(|(name, _)| name == v.name) {
            Source::Environment
        } else {
            Source::Default
        };
        let value = match value {
            Some(_) if v.hidden => "(hidden)".to_owned(),
            Some(value) => value,
            None => v.default.to_owned(),
        };
        Setting { name: v.name, value, source, values: v.values, meaning: v.meaning }
    };
    Ok(VARIABLES.iter().map(setting).collect())
}

/// Look at `variables` as `stepccl config` does.
#[cfg(feature = "fuzz")]
pub(crate) fn check_variables(variables: &[(String, String)]) {
    let shown = settings(&Config::default(), variables);
    assert!(shown.is_ok_and(|all| all.len() == VARIABLES.len()) || !variables.is_empty());
    let unknown = unknown(variables);
    assert!(unknown.len() <= variables.len());
}

fn unknown(variables: &[(String, String)]) -> Vec<String> {
    let line = |name: &String| match nearest(name, VARIABLES.iter().map(|v| v.name)) {
        Some((edits, nearest)) if edits <= nearest.len() / 4 => {
            format!("{name} is not a setting; did you mean {nearest}?")
        }
        _ => format!("{name} is not a setting; `stepccl config` lists them"),
    };
    variables.iter().map(|(name, _)| name).filter(|name| is_unknown(name)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_source_is_told() {
        let set = variables(&[
            ("STEPCCL_ENGINE", "auto"),
            ("STEPCCL_SECRET", "nobody reads this"),
            ("STEPCCL_TIMEOUT", "5"),
        ]);
        let mut config = Config::default();
        apply(&mut config, &set).unwrap();
        config.channels = 2;
        let found = settings(&config, &set).unwrap();
        let of = |name| found.iter().find(|s| s.name == name).unwrap();
        assert_eq!(of("STEPCCL_ENGINE").source, Source::Environment);
        assert_eq!(of("STEPCCL_TIMEOUT").value, "5");
        assert_eq!(of("STEPCCL_DMA_CONCURRENCY").source, Source::Caller);
        assert_eq!(of("STEPCCL_PAGE_SIZE").source, Source::Default);
        assert_eq!(of("STEPCCL_PAGE_SIZE").value, "chosen by the cost model");
        assert!(!format!("{found:?}").contains("nobody reads this"));
    }

    #[test]
    fn unknown_names_are_told_with_the_nearest() {
        let set = variables(&[
            ("STEPCCL_BUFER_SIZE", "1"),
            ("STEPCCL_ELEPHANT", "1"),
            ("STEPCCL_TEST_RANK", "1"),
            ("STEPCCL_TIMEOUT", "1"),
            ("STEPCCL_timeout", "1"),
            ("STEPCL_TIMEOUT", "1"),
            ("STEPPING", "1"),
            ("stepccl_log", "info"),
        ]);
        let lines = unknown(&set);
        assert_eq!(
            lines,
            [
                "STEPCCL_BUFER_SIZE is not a setting; did you mean STEPCCL_BUFFER_SIZE?",
                "STEPCCL_ELEPHANT is not a setting; `stepccl config` lists them",
                "STEPCCL_timeout is not a setting; did you mean STEPCCL_TIMEOUT?",
                "STEPCL_TIMEOUT is not a setting; did you mean STEPCCL_TIMEOUT?",
                "stepccl_log is not a setting; did you mean STEPCCL_LOG?",
            ]
        );
    }
}
