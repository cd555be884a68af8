//! Entry points of the fuzz targets of this crate; see `tests/fuzz`.

use stepccl_plan::Collective;

use crate::called::Called;
use crate::environment::VARIABLES;
use crate::header::Header;
use crate::{Config, settings};

/// What two words of a peer are shown as.
#[must_use]
pub fn text_of(words: [u64; 2]) -> String {
    Called(words).to_string()
}

/// Words that say what a rank called, and the header of a message.
pub fn called(data: &[u8]) {
    let (words, rest) = data.as_chunks::<8>();
    if let [first, second, ..] = words {
        let called = Called([u64::from_le_bytes(*first), u64::from_le_bytes(*second)]);
        let text = called.to_string();
        assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
        let _ = called.codes();
    }
    let mut header = Header::new(0, 0);
    let bytes = header.0.len().min(data.len());
    header.0[..bytes].copy_from_slice(&data[..bytes]);
    if let Some((tag, bytes)) = header.read() {
        assert_eq!(Header::new(tag, bytes).read(), Some((tag, bytes)));
    }
    let _ = rest;
}

/// First inputs of [`called`].
#[must_use]
pub fn called_seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![Header::new(-3, 1 << 40).0.to_vec()];
    for kind in 0..=Collective::ALL.len() as u64 + 1 {
        let word = kind | (kind + 1) << 8 | (kind % 7) << 16 | 1 << 32;
        seeds.push([word.to_le_bytes(), 77u64.to_le_bytes()].concat());
    }
    seeds
}

/// Variables of the environment, a line each: a name, `=`, a value. A number in place of a name
/// stands for one of the settings.
pub fn variables(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let variables: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| {
            let place: Option<usize> = name.parse().ok();
            let known = place.and_then(|place| VARIABLES.get(place)).map(|v| v.name.to_owned());
            (known.unwrap_or_else(|| name.to_owned()), value.to_owned())
        })
        .collect();
    settings::check_variables(&variables);
    let mut config = Config::default();
    match crate::environment::apply(&mut config, &variables) {
        Ok(()) => drop(config.check()),
        Err(error) => assert!(error.to_string().contains("STEPCCL_"), "{error}"),
    }
    for variable in &VARIABLES {
        let value = (variable.get)(&config);
        // What is shown can be set again.
        if let Some(value) = value.filter(|_| config.check().is_ok()) {
            let mut again = Config::default();
            let set = crate::environment::apply(&mut again, &[(variable.name.to_owned(), value)]);
            assert!(set.is_ok(), "{set:?}");
        }
    }
}

/// First inputs of [`variables`].
#[must_use]
pub fn variables_seeds() -> Vec<Vec<u8>> {
    let values = [
        "ring",
        "2MiB",
        "3",
        "USR2",
        "tcp",
        "64",
        "2.5",
        "info",
        "log.%h.%p",
        "65536",
        "7",
        "a secret of enough letters",
        "off",
        "^docker",
        "1.5",
    ];
    let mut seeds: Vec<_> =
        values.iter().enumerate().map(|(at, value)| format!("{at}={value}").into_bytes()).collect();
    seeds.push(b"STEPCCL_TIMEOUT=3\nSTEPCCL_TIMOUT=3\nSTEPCCL_=\n4=host\n".to_vec());
    seeds
}
