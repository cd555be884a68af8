//! Every environment variable of StepCCL, in one table: `Documentation/environment.md` shows it.

use std::time::Duration;

use stepccl_plan::Algorithm;

use crate::nearest::nearest;
use crate::size::parse_size;
use crate::{Config, EngineChoice, Error};

/// Prefix of every variable.
const PREFIX: &str = "STEPCCL_";
/// What a name begins with, in any case, that may have been meant to have the prefix.
const LIKE_PREFIX: &str = "STEP";
/// Letters by which a name without the prefix may differ from a setting and be meant for it.
const SLIPS: usize = 2;
/// Prefixes of what the project's own programs hand to their children: no settings, and no mistakes.
const INTERNAL: [&str; 3] = ["STEPCCL_BENCH_", "STEPCCL_EXAMPLE_", "STEPCCL_TEST_"];

/// One variable: what users may write, and what it does to a [`Config`].
pub(crate) struct Variable {
    pub name: &'static str,
    /// What it may be set to.
    pub values: &'static str,
    /// What holds where it is not set.
    pub default: &'static str,
    pub meaning: &'static str,
    set: fn(&mut Config, &'static str, &str) -> Result<(), Error>,
    /// The value in a config; None where it is left to the default.
    pub get: fn(&Config) -> Option<String>,
    /// Its value is never shown.
    pub hidden: bool,
}

/// Every variable, by name.
pub(crate) static VARIABLES: [Variable; 15] = [
    Variable {
        name: "STEPCCL_ALGORITHM",
        values: "`direct`, `two_shot`, `ring`, `recursive`, `tree`, `hierarchical`",
        default: "chosen by the cost model",
        meaning: "algorithm of every collective that it exists for",
        set: |config, name, value| {
            let algorithm: Algorithm = value.parse().map_err(|_| {
                let names: Vec<_> = Algorithm::ALL.iter().map(|a| a.name()).collect();
                Error::invalid(name, value, format!("must be one of {}", names.join(", ")))
            })?;
            config.algorithm = Some(algorithm);
            Ok(())
        },
        get: |config| config.algorithm.map(|a| a.name().to_owned()),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_BUFFER_SIZE",
        values: "bytes, or `4MiB`, `256KB`; 64 KiB to 1 GiB",
        default: "8 MiB over all ranks of a node, at most 4 MiB a rank",
        meaning: "staging memory of a rank",
        set: |config, name, value| {
            config.buffer_bytes = Some(parse_size(name, value)?);
            Ok(())
        },
        get: |config| config.buffer_bytes.map(|b| b.to_string()),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_DMA_CONCURRENCY",
        values: "0 to 64",
        default: "0",
        meaning: "DMA channels (threads here) used at once; 0: the calling thread moves the bytes",
        set: |config, name, value| {
            config.channels = parse(name, value, "must be a whole number from 0 to 64")?;
            Ok(())
        },
        get: |config| Some(config.channels.to_string()),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_DUMP_SIGNAL",
        values: "a signal, such as `USR2`",
        default: "none",
        meaning: "signal that logs the flight records of the process",
        set: |config, _, value| {
            config.dump_signal = Some(value.to_owned());
            Ok(())
        },
        get: |config| config.dump_signal.clone(),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_ENGINE",
        values: "`auto`, `host`, `tcp`",
        default: "`auto`",
        meaning: "what moves the bytes; `auto`: shared memory within a node, TCP between nodes",
        set: |config, name, value| {
            let found = EngineChoice::ALL.into_iter().find(|e| e.name() == value);
            config.engine =
                found.ok_or_else(|| Error::invalid(name, value, "must be auto, host or tcp"))?;
            Ok(())
        },
        get: |config| Some(config.engine.name().to_owned()),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_FLIGHT_RECORDS",
        values: "0 to 1048576",
        default: "2048",
        meaning: "operations that the flight record keeps; 0: there is none",
        set: |config, name, value| {
            config.flight_records = parse(name, value, "must be a whole number from 0 to 1048576")?;
            Ok(())
        },
        get: |config| Some(config.flight_records.to_string()),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_LINK_TIMEOUT",
        values: "seconds, 2 to 86400",
        default: "20",
        meaning: "after so long without an answer, a link between nodes counts as cut",
        set: |config, name, value| {
            config.link_timeout = seconds(name, value)?;
            Ok(())
        },
        get: |config| Some(config.link_timeout.as_secs_f64().to_string()),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_LOG",
        values: "`off`, `error`, `warn`, `info`, `debug`, `trace`",
        default: "`warn`",
        meaning: "what is logged",
        set: |config, _, value| {
            config.log = Some(value.to_owned());
            Ok(())
        },
        get: |config| config.log.clone(),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_LOG_FILE",
        values: "a file; `%h` host, `%p` process, `%r` rank",
        default: "standard error",
        meaning: "where it is logged to",
        set: |config, _, value| {
            config.log_file = Some(value.to_owned());
            Ok(())
        },
        get: |config| config.log_file.clone(),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_PAGE_SIZE",
        values: "bytes, or `64KiB`; 64 bytes to 1 GiB",
        default: "chosen by the cost model",
        meaning: "bytes of a page of one block",
        set: |config, name, value| {
            config.page_bytes = Some(parse_size(name, value)?);
            Ok(())
        },
        get: |config| config.page_bytes.map(|b| b.to_string()),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_PIPELINE_DEPTH",
        values: "1 to 64",
        default: "chosen by the cost model",
        meaning: "pages in flight",
        set: |config, name, value| {
            let rule = "must be a whole number from 1 to 64";
            config.pipeline_depth = Some(parse(name, value, rule)?);
            Ok(())
        },
        get: |config| config.pipeline_depth.map(|d| d.to_string()),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_SECRET",
        values: "a text of 16 bytes or more, the same on every rank",
        default: "made by rank 0 and passed through the store",
        meaning: "the job's secret; its value is never shown",
        set: |config, _, value| {
            config.secret = Some(value.to_owned());
            Ok(())
        },
        get: |config| config.secret.clone(),
        hidden: true,
    },
    Variable {
        name: "STEPCCL_SINGLE_COPY",
        values: "`auto`, `on`, `off`",
        default: "`auto`",
        meaning: "whether long messages are read from the peers' memory; `auto`: where that is fast",
        set: |config, name, value| {
            config.single_copy = match value {
                "auto" => None,
                "on" => Some(true),
                "off" => Some(false),
                _ => return Err(Error::invalid(name, value, "must be auto, on or off")),
            };
            Ok(())
        },
        get: |config| {
            let text = config.single_copy.map_or("auto", |on| if on { "on" } else { "off" });
            Some(text.to_owned())
        },
        hidden: false,
    },
    Variable {
        name: "STEPCCL_SOCKET_IFNAME",
        values: "prefixes with commas between, `=` before exact names, `^` before those to leave out",
        default: "all",
        meaning: "network interfaces between nodes",
        set: |config, _, value| {
            config.socket_ifname = Some(value.to_owned());
            Ok(())
        },
        get: |config| config.socket_ifname.clone(),
        hidden: false,
    },
    Variable {
        name: "STEPCCL_TIMEOUT",
        values: "seconds above 0",
        default: "1800",
        meaning: "time an operation may take",
        set: |config, name, value| {
            config.timeout = seconds(name, value)?;
            Ok(())
        },
        get: |config| Some(config.timeout.as_secs_f64().to_string()),
        hidden: false,
    },
];

/// The variables of the process that are the project's or look like them, by name.
pub(crate) fn variables_of_process() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.to_string_lossy().into_owned())))
        .filter(|(k, _)| begins(k, LIKE_PREFIX))
        .collect();
    found.sort();
    found
}

/// Put `variables` over what `config` says; those that are no settings are left alone.
pub(crate) fn apply(config: &mut Config, variables: &[(String, String)]) -> Result<(), Error> {
    for (name, value) in variables {
        if let Some(variable) = VARIABLES.iter().find(|v| v.name == name) {
            (variable.set)(config, variable.name, value.trim())?;
        }
    }
    Ok(())
}

/// The error of a value out of range, naming the variable that it came from.
pub(crate) fn name_variable(error: Error) -> Error {
    let Error::InvalidArgument { name, value, rule } = error else { return error };
    let wanted = format!("{PREFIX}{}", name.to_ascii_uppercase());
    let name = VARIABLES.iter().find(|v| v.name == wanted).map_or(name, |v| v.name);
    Error::InvalidArgument { name, value, rule }
}

/// Whether `name` has the prefix or nearly so, and is neither a setting nor the project's own.
pub(crate) fn is_unknown(name: &str) -> bool {
    let names = || VARIABLES.iter().map(|v| v.name);
    let meant = begins(name, PREFIX)
        || begins(name, LIKE_PREFIX)
            && nearest(name, names()).is_some_and(|(edits, _)| edits <= SLIPS);
    meant
        && names().all(|known| known != name)
        && INTERNAL.iter().all(|prefix| !name.starts_with(prefix))
}

/// Whether `name` begins with `prefix`, in any case.
fn begins(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn seconds(name: &'static str, value: &str) -> Result<Duration, Error> {
    let rule = "must be a number of seconds above 0";
    let seconds: f64 = parse(name, value, rule)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| Error::invalid(name, value, rule))
}

fn parse<T: std::str::FromStr>(name: &'static str, value: &str, rule: &str) -> Result<T, Error> {
    value.parse().map_err(|_| Error::invalid(name, value, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(config: &mut Config, name: &str, value: &str) -> Result<(), Error> {
        apply(config, &[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn each_variable_changes_its_setting() {
        let values = [
            "ring",
            "2097152",
            "3",
            "USR2",
            "tcp",
            "64",
            "2.5",
            "info",
            "log.%h.%p",
            "65536",
            "7",
            "a secret",
            "off",
            "^docker",
            "1.5",
        ];
        for (variable, value) in VARIABLES.iter().zip(values) {
            let mut config = Config::default();
            assert_ne!((variable.get)(&config).as_deref(), Some(value));
            set(&mut config, variable.name, value).unwrap();
            assert_eq!((variable.get)(&config).as_deref(), Some(value), "{}", variable.name);
        }
        let mut config = Config::default();
        set(&mut config, "STEPCCL_BUFFER_SIZE", " 2MiB ").unwrap();
        assert_eq!(config.buffer_bytes, Some(2 << 20));
        assert!(VARIABLES.is_sorted_by_key(|v| v.name));
    }

    #[test]
    fn bad_values_name_variable_value_and_rule() {
        for (name, value) in [
            ("STEPCCL_ALGORITHM", "fastest"),
            ("STEPCCL_BUFFER_SIZE", "many"),
            ("STEPCCL_DMA_CONCURRENCY", "-1"),
            ("STEPCCL_ENGINE", "TCP2"),
            ("STEPCCL_FLIGHT_RECORDS", "all"),
            ("STEPCCL_LINK_TIMEOUT", "soon"),
            ("STEPCCL_PAGE_SIZE", "one"),
            ("STEPCCL_PIPELINE_DEPTH", "x"),
            ("STEPCCL_SINGLE_COPY", "yes"),
            ("STEPCCL_TIMEOUT", "-3"),
        ] {
            let text = set(&mut Config::default(), name, value).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(value), "{text}");
        }
    }

    #[test]
    fn the_document_has_the_table() {
        let document = include_str!("../../../Documentation/environment.md");
        let rows: Vec<&str> = document.lines().filter(|l| l.starts_with("| `STEPCCL_")).collect();
        let wanted: Vec<String> = VARIABLES
            .iter()
            .map(|v| format!("| `{}` | {} | {} | {} |", v.name, v.values, v.default, v.meaning))
            .collect();
        assert_eq!(rows, wanted, "Documentation/environment.md: its table must read\n{wanted:#?}");
    }
}
