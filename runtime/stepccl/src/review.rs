//! All that is right and wrong with the `STEPCCL_` variables of the process, without stopping at
//! the first slip.

use std::path::Path;

use stepccl_bootstrap::Secret;

use crate::environment::{VARIABLES, Variable, apply, name_variable, variables_of_process};
use crate::settings::{Setting, Source, settings, unknown_variables};
use crate::{Config, Error, logging};

/// Shown in place of a value that nobody may see.
const HIDDEN: &str = "(hidden)";

/// What the variables of a process say.
#[derive(Clone, Debug)]
pub struct Review {
    /// Every setting, by name; one with a bad value has the value that its user wrote.
    pub settings: Vec<Setting>,
    /// Every bad value, by name of its variable; each is an [`Error::InvalidArgument`].
    pub errors: Vec<Error>,
    /// A line for each variable that is no setting.
    pub warnings: Vec<String>,
}

impl Review {
    /// Look at the variables of this process; also at those that a job reads only when it needs
    /// them, such as the file to log to. Nothing is created.
    #[must_use]
    pub fn of_process() -> Self {
        let (settings, errors) = review(&variables_of_process());
        Self { settings, errors, warnings: unknown_variables() }
    }
}

fn review(variables: &[(String, String)]) -> (Vec<Setting>, Vec<Error>) {
    let mut bad = Vec::new();
    for (name, value) in variables {
        if let Some(variable) = VARIABLES.iter().find(|v| v.name == name)
            && let Err(error) = check(variable, value)
        {
            bad.push((variable, value, error));
        }
    }
    let good: Vec<_> = variables
        .iter()
        .filter(|(name, _)| bad.iter().all(|(variable, ..)| variable.name != name))
        .cloned()
        .collect();
    let mut config = Config::default();
    // Every value was tried: no error is left to be told.
    let mut rows =
        apply(&mut config, &good).and_then(|()| settings(&config, &good)).unwrap_or_default();
    for (variable, value, _) in &bad {
        if let Some(row) = rows.iter_mut().find(|row| row.name == variable.name) {
            row.source = Source::Environment;
            row.value = if variable.hidden { HIDDEN.to_owned() } else { (*value).clone() };
        }
    }
    (rows, bad.into_iter().map(|(.., error)| error).collect())
}

/// Try one value alone.
fn check(variable: &'static Variable, value: &str) -> Result<(), Error> {
    let mut config = Config::default();
    apply(&mut config, &[(variable.name.to_owned(), value.to_owned())])?;
    config.check().map_err(name_variable)?;
    let refused = |rule: String| {
        let shown = if variable.hidden { HIDDEN } else { value };
        Err(Error::invalid(variable.name, shown, rule))
    };
    if let Some(secret) = &config.secret
        && let Err(error) = Secret::from_text(secret)
    {
        return refused(error.to_string());
    }
    if let Some(pattern) = config.log_file.as_deref().filter(|pattern| !pattern.is_empty())
        && let Err(rule) = log_file(pattern)
    {
        return refused(rule);
    }
    if let Some(list) = &config.socket_ifname
        && let Err(rule) = interfaces(list)
    {
        return refused(rule);
    }
    Ok(())
}

/// Whether lines could be written to the file that `pattern` names for rank 0.
fn log_file(pattern: &str) -> Result<(), String> {
    let path = logging::expand(pattern, 0);
    let path = Path::new(&path);
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let can_write = |path: &Path| nix::unistd::access(path, nix::unistd::AccessFlags::W_OK);
    match path.metadata() {
        Ok(found) if found.is_dir() => {
            return Err(format!("must name a file, and {} is a folder", path.display()));
        }
        Ok(_) => {
            return can_write(path).map_err(|error| {
                format!("must name a file that can be written, and {}: {error}", path.display())
            });
        }
        Err(_) => {}
    }
    match folder.metadata() {
        Ok(found) if found.is_dir() => can_write(folder).map_err(|error| {
            format!(
                "must name a file in a folder that can be written, and {}: {error}",
                folder.display()
            )
        }),
        Ok(_) => Err(format!("must name a file in a folder, and {} is none", folder.display())),
        Err(error) => Err(format!(
            "must name a file in a folder that exists, and {}: {error}",
            folder.display()
        )),
    }
}

/// Whether the list chooses an interface of this machine.
fn interfaces(list: &str) -> Result<(), String> {
    let network =
        stepccl_bootstrap::Network { everywhere: true, interfaces: Some(list.to_owned()) };
    network.check().map_err(|error| format!("must choose an interface: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (Vec<Setting>, Vec<String>) {
        let own: Vec<_> =
            variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let (rows, errors) = review(&own);
        assert_eq!(rows.len(), VARIABLES.len());
        (rows, errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_bad_value_is_told_and_good_ones_hold() {
        let (rows, errors) = of(&[
            ("STEPCCL_ALGORITHM", "fastest"),
            ("STEPCCL_BUFFER_SIZE", "1"),
            ("STEPCCL_ENGINE", "tcp"),
            ("STEPCCL_SECRET", "too short"),
            ("STEPCCL_TIMEOUT", "never"),
        ]);
        let told: Vec<_> = errors.iter().map(|e| e.split(" = ").next().unwrap()).collect();
        let names =
            ["STEPCCL_ALGORITHM", "STEPCCL_BUFFER_SIZE", "STEPCCL_SECRET", "STEPCCL_TIMEOUT"];
        assert_eq!(told, names);
        let value = |name| &rows.iter().find(|row| row.name == name).unwrap().value;
        assert_eq!(value("STEPCCL_ENGINE"), "tcp");
        assert_eq!(value("STEPCCL_ALGORITHM"), "fastest");
        assert_eq!(value("STEPCCL_SECRET"), HIDDEN);
        assert!(!format!("{rows:?} {errors:?}").contains("too short"));
    }

    #[test]
    fn a_log_file_needs_a_folder_that_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        let name = |tail: &str| format!("{}{tail}", folder.path().display());
        for good in ["/log", "/log.%h.%p.%r", ""] {
            let value = if good.is_empty() { String::new() } else { name(good) };
            assert_eq!(log_file_errors(&value), Vec::<String>::new(), "{value}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is created");
        std::fs::write(name("/file"), "").unwrap();
        assert_eq!(log_file_errors(&name("/file")), Vec::<String>::new());
        for (tail, words) in
            [("", "is a folder"), ("/none/log", "exists"), ("/file/log", "is none")]
        {
            let errors = log_file_errors(&name(tail));
            assert!(errors.len() == 1 && errors[0].contains(words), "{tail}: {errors:?}");
        }
    }

    fn log_file_errors(value: &str) -> Vec<String> {
        of(&[("STEPCCL_LOG_FILE", value)]).1
    }

    #[test]
    fn an_interface_must_be_there() {
        for good in ["", "lo", "=lo", "lo,eth", "^nothing-of-this-name"] {
            assert_eq!(of(&[("STEPCCL_SOCKET_IFNAME", good)]).1, Vec::<String>::new(), "{good}");
        }
        for bad in ["nothing-of-this-name", "=l", "=nothing-of-this-name,also-nothing"] {
            let errors = of(&[("STEPCCL_SOCKET_IFNAME", bad)]).1;
            assert!(errors.len() == 1 && errors[0].contains("there are"), "{bad}: {errors:?}");
        }
    }
}
