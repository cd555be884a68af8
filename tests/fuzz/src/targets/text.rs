//! What people write: sizes, secrets, names of algorithms and collectives.

use stepccl::{Algorithm, Collective, Secret, parse_size};
use stepccl_flight::dump_signal;

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse_size("size", &text) {
        Ok(bytes) => assert_eq!(parse_size("size", &bytes.to_string()).ok(), Some(bytes)),
        Err(error) => assert!(error.to_string().contains("size"), "{error}"),
    }
    if let Ok(algorithm) = text.parse::<Algorithm>() {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
    }
    if let Some(collective) = Collective::from_name(&text) {
        assert_eq!(Collective::from_name(collective.name()), Some(collective));
    }
    if let Err(error) = Secret::from_text(&text) {
        // The text is in no message: one of the same length gives the same.
        let other = Secret::from_text(&"x".repeat(text.trim().len()));
        assert_eq!(other.err().map(|e| e.to_string()), Some(error.to_string()));
    }
    let _ = dump_signal(Some(&text));
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = ["8388608", " 8 MiB ", "1g", "17KB", "direct", "two_shot", "all_reduce", "SIGUSR2"];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
