//! Every environment variable of StepCCL, in one place.
//!
//! | variable | value | default |
//! |---|---|---|
//! | `STEPCCL_ALGORITHM` | `direct`, `two_shot`, `ring`, `recursive`, `tree`, `hierarchical` | chosen by the cost model |
//! | `STEPCCL_BUFFER_SIZE` | bytes, or `4MiB`, `256KB` | 8 MiB over all ranks of a node, at most 4 MiB a rank |
//! | `STEPCCL_DMA_CONCURRENCY` | DMA channels (threads here) used at once, 0 to 64 | 0 |
//! | `STEPCCL_ENGINE` | `auto`, `host`, `tcp` | `auto`: shared memory within a node, TCP between nodes |
//! | `STEPCCL_LINK_TIMEOUT` | seconds, 2 to 86400, after which a link between nodes that does not answer counts as cut | 20 |
//! | `STEPCCL_DUMP_SIGNAL` | signal that logs the flight records of the process, such as `USR2` | none |
//! | `STEPCCL_FLIGHT_RECORDS` | operations that the flight record keeps, 0 to 1048576 | 2048 |
//! | `STEPCCL_LOG` | `off`, `error`, `warn`, `info`, `debug`, `trace` | `warn` |
//! | `STEPCCL_LOG_FILE` | file to log to; `%h` host, `%p` process, `%r` rank | standard error |
//! | `STEPCCL_PAGE_SIZE` | bytes of a page of one block, as above | chosen by the cost model |
//! | `STEPCCL_PIPELINE_DEPTH` | pages in flight, 1 to 64 | chosen by the cost model |
//! | `STEPCCL_SINGLE_COPY` | `auto`, `on`, `off`: whether long messages are read from the peers' memory | `auto` |
//! | `STEPCCL_SECRET` | the job's secret, a text of 16 bytes or more, the same on every rank | made by rank 0 and passed through the store |
//! | `STEPCCL_SOCKET_IFNAME` | network interfaces between nodes: prefixes with commas between, `=` before exact names, `^` before those to leave out | all |
//! | `STEPCCL_TIMEOUT` | seconds an operation may take | 1800 |

use std::time::Duration;

use stepccl_plan::Algorithm;

use crate::size::parse_size;
use crate::{Config, EngineChoice, Error};

/// Prefix of every variable.
const PREFIX: &str = "STEPCCL_";

/// Put the variables of the process over the defaults of `config`.
pub(crate) fn apply(config: &mut Config) -> Result<(), Error> {
    let mut known: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.to_string_lossy().into_owned())))
        .filter(|(k, _)| k.starts_with(PREFIX))
        .collect();
    known.sort();
    for (name, value) in known {
        apply_one(config, &name, value.trim())?;
    }
    Ok(())
}

fn apply_one(config: &mut Config, name: &str, value: &str) -> Result<(), Error> {
    match name {
        "STEPCCL_ALGORITHM" => {
            let algorithm: Algorithm = value.parse().map_err(|_| {
                let names: Vec<_> = Algorithm::ALL.iter().map(|a| a.name()).collect();
                let rule = format!("must be one of {}", names.join(", "));
                Error::invalid("STEPCCL_ALGORITHM", value, rule)
            })?;
            config.algorithm = Some(algorithm);
        }
        "STEPCCL_BUFFER_SIZE" => {
            config.buffer_bytes = Some(parse_size("STEPCCL_BUFFER_SIZE", value)?);
        }
        "STEPCCL_DMA_CONCURRENCY" => {
            config.channels =
                parse("STEPCCL_DMA_CONCURRENCY", value, "must be a whole number from 0 to 64")?;
        }
        "STEPCCL_ENGINE" => {
            let found = EngineChoice::ALL.into_iter().find(|e| e.name() == value);
            config.engine = found.ok_or_else(|| {
                Error::invalid("STEPCCL_ENGINE", value, "must be auto, host or tcp")
            })?;
        }
        "STEPCCL_LINK_TIMEOUT" => {
            config.link_timeout = seconds("STEPCCL_LINK_TIMEOUT", value)?;
        }
        "STEPCCL_SOCKET_IFNAME" => config.socket_ifname = Some(value.to_owned()),
        "STEPCCL_DUMP_SIGNAL" => config.dump_signal = Some(value.to_owned()),
        "STEPCCL_FLIGHT_RECORDS" => {
            let rule = "must be a whole number from 0 to 1048576";
            config.flight_records = parse("STEPCCL_FLIGHT_RECORDS", value, rule)?;
        }
        "STEPCCL_LOG" => config.log = Some(value.to_owned()),
        "STEPCCL_LOG_FILE" => config.log_file = Some(value.to_owned()),
        "STEPCCL_PAGE_SIZE" => config.page_bytes = Some(parse_size("STEPCCL_PAGE_SIZE", value)?),
        "STEPCCL_PIPELINE_DEPTH" => {
            config.pipeline_depth = Some(parse(
                "STEPCCL_PIPELINE_DEPTH",
                value,
                "must be a whole number from 1 to 64",
            )?);
        }
        "STEPCCL_SINGLE_COPY" => {
            config.single_copy = match value {
                "auto" => None,
                "on" => Some(true),
                "off" => Some(false),
                _ => {
                    let rule = "must be auto, on or off";
                    return Err(Error::invalid("STEPCCL_SINGLE_COPY", value, rule));
                }
            }
        }
        "STEPCCL_SECRET" => config.secret = Some(value.to_owned()),
        "STEPCCL_TIMEOUT" => {
            config.timeout = seconds("STEPCCL_TIMEOUT", value)?;
        }
        // A launcher may set variables for other programs of the project.
        _ => {}
    }
    Ok(())
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

    #[test]
    fn each_variable_changes_its_setting() {
        let mut config = Config::default();
        for (name, value) in [
            ("STEPCCL_ALGORITHM", "ring"),
            ("STEPCCL_BUFFER_SIZE", "2MiB"),
            ("STEPCCL_DMA_CONCURRENCY", "3"),
            ("STEPCCL_ENGINE", "tcp"),
            ("STEPCCL_LINK_TIMEOUT", "2.5"),
            ("STEPCCL_SOCKET_IFNAME", "^docker"),
            ("STEPCCL_DUMP_SIGNAL", "USR2"),
            ("STEPCCL_FLIGHT_RECORDS", "64"),
            ("STEPCCL_LOG", "info"),
            ("STEPCCL_LOG_FILE", "log.%h.%p"),
            ("STEPCCL_PAGE_SIZE", "64KiB"),
            ("STEPCCL_PIPELINE_DEPTH", "7"),
            ("STEPCCL_SINGLE_COPY", "off"),
            ("STEPCCL_SECRET", "s"),
            ("STEPCCL_TIMEOUT", "1.5"),
        ] {
            apply_one(&mut config, name, value).unwrap();
        }
        assert_eq!(config.algorithm, Some(Algorithm::Ring));
        assert_eq!(config.buffer_bytes, Some(2 << 20));
        assert_eq!(config.engine, EngineChoice::Tcp);
        assert_eq!(config.link_timeout, Duration::from_millis(2500));
        assert_eq!(config.socket_ifname.as_deref(), Some("^docker"));
        assert_eq!(config.channels, 3);
        assert_eq!(config.dump_signal.as_deref(), Some("USR2"));
        assert_eq!(config.flight_records, 64);
        assert_eq!(config.log.as_deref(), Some("info"));
        assert_eq!(config.log_file.as_deref(), Some("log.%h.%p"));
        assert_eq!(config.page_bytes, Some(64 << 10));
        assert_eq!(config.pipeline_depth, Some(7));
        assert_eq!(config.single_copy, Some(false));
        assert_eq!(config.secret.as_deref(), Some("s"));
        assert_eq!(config.timeout, Duration::from_millis(1500));
    }

    #[test]
    fn bad_values_name_variable_value_and_rule() {
        for (name, value) in [
            ("STEPCCL_ALGORITHM", "fastest"),
            ("STEPCCL_BUFFER_SIZE", "many"),
            ("STEPCCL_DMA_CONCURRENCY", "-1"),
            ("STEPCCL_ENGINE", "TCP2"),
            ("STEPCCL_LINK_TIMEOUT", "soon"),
            ("STEPCCL_FLIGHT_RECORDS", "all"),
            ("STEPCCL_PAGE_SIZE", "one"),
            ("STEPCCL_PIPELINE_DEPTH", "x"),
            ("STEPCCL_SINGLE_COPY", "yes"),
            ("STEPCCL_TIMEOUT", "-3"),
        ] {
            let text = apply_one(&mut Config::default(), name, value).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(value), "{text}");
        }
    }
}
