//! Settings from a text.

use std::time::Duration;

use stepccl::{Algorithm, Config, EngineChoice, parse_size};

use crate::guard::Failure;

const NAMES: &str = "algorithm, buffer_size, dma_concurrency, engine, page_size, pipeline_depth, \
                     secret, single_copy, socket_ifname, start_timeout, timeout";

/// The environment's settings with those of `text` over them: `name=value`, with white space
/// between.
pub(crate) fn parse(text: &str) -> Result<Config, Failure> {
    let mut config = Config::from_env()?;
    for word in text.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else {
            return Err(Failure::argument(format!("config: {word:?} must be name=value")));
        };
        set(&mut config, name, value)?;
    }
    config.check()?;
    Ok(config)
}

fn set(config: &mut Config, name: &str, value: &str) -> Result<(), Failure> {
    match name {
        "algorithm" => config.algorithm = Some(number::<Algorithm>(name, value)?),
        "buffer_size" => config.buffer_bytes = Some(parse_size("buffer_size", value)?),
        "dma_concurrency" => config.channels = number(name, value)?,
        "engine" => {
            let found = EngineChoice::ALL.into_iter().find(|e| e.name() == value);
            config.engine = found.ok_or_else(|| bad(name, value, "must be auto, host or tcp"))?;
        }
        "page_size" => config.page_bytes = Some(parse_size("page_size", value)?),
        "pipeline_depth" => config.pipeline_depth = Some(number(name, value)?),
        "secret" => config.secret = Some(value.to_owned()),
        "single_copy" => {
            config.single_copy = match value {
                "auto" => None,
                "on" => Some(true),
                "off" => Some(false),
                _ => return Err(bad(name, value, "must be auto, on or off")),
            }
        }
        "socket_ifname" => config.socket_ifname = Some(value.to_owned()),
        "start_timeout" => config.start_timeout = seconds(name, value)?,
        "timeout" => config.timeout = seconds(name, value)?,
        _ => return Err(Failure::argument(format!("config: {name:?} must be one of {NAMES}"))),
    }
    Ok(())
}

fn bad(name: &str, value: &str, rule: &str) -> Failure {
    Failure::argument(format!("config: {name} = {value:?}: {rule}"))
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Failure> {
    let rule = "is not a value of this setting; Documentation/c-guide.md lists them";
    value.parse().map_err(|_| bad(name, value, rule))
}

fn seconds(name: &str, value: &str) -> Result<Duration, Failure> {
    let seconds: f64 = number(name, value)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| bad(name, value, "must be a number of seconds above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_changes_its_setting() {
        let text = "algorithm=ring buffer_size=2MiB dma_concurrency=3\tengine=tcp page_size=64KiB \
                    pipeline_depth=7 secret=0123456789abcdef single_copy=off\nsocket_ifname=^docker,lo \
                    start_timeout=2 timeout=1.5";
        let config = parse(text).unwrap();
        assert_eq!(config.algorithm, Some(Algorithm::Ring));
        assert_eq!(config.buffer_bytes, Some(2 << 20));
        assert_eq!((config.channels, config.engine), (3, EngineChoice::Tcp));
        assert_eq!((config.page_bytes, config.pipeline_depth), (Some(64 << 10), Some(7)));
        assert_eq!(config.secret.as_deref(), Some("0123456789abcdef"));
        assert_eq!(config.single_copy, Some(false));
        assert_eq!(config.socket_ifname.as_deref(), Some("^docker,lo"));
        assert_eq!(config.start_timeout, Duration::from_secs(2));
        assert_eq!(config.timeout, Duration::from_millis(1500));
        for word in text.split_whitespace() {
            let name = word.split_once('=').unwrap().0;
            assert!(NAMES.contains(name), "{name} is not in the list that errors show");
        }
    }

    #[test]
    fn bad_settings_are_named() {
        for (text, part) in [
            ("timeout", "name=value"),
            ("fast=1", "timeout"),
            ("timeout=soon", "soon"),
            ("timeout=-1", "above 0"),
            ("timeout=0", "above 0"),
            ("engine=gpu", "auto, host or tcp"),
            ("pipeline_depth=65", "64"),
            ("single_copy=1", "on or off"),
        ] {
            let failure = parse(text).unwrap_err();
            assert!(failure.text.contains(part), "{text}: {}", failure.text);
        }
    }
}
