//! What libFuzzer calls. The target is named by a variable, so that one build serves all.

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

use crate::target::Target;

/// Name of the target.
const TARGET: &str = "STEPCCL_TEST_FUZZ_TARGET";
/// Folder to which the target's first inputs are written.
const SEEDS: &str = "STEPCCL_TEST_FUZZ_SEEDS";

static CHOSEN: OnceLock<&'static Target> = OnceLock::new();

fn chosen() -> &'static Target {
    CHOSEN.get_or_init(|| {
        let name = std::env::var(TARGET).unwrap_or_default();
        Target::find(&name).unwrap_or_else(|| panic!("{TARGET}={name:?} is not a target"))
    })
}

fn write_seeds() {
    let Some(folder) = std::env::var_os(SEEDS) else { return };
    for (number, seed) in (chosen().seeds)().into_iter().enumerate() {
        let file = Path::new(&folder).join(format!("seed-{number}"));
        if let Err(error) = std::fs::write(&file, seed) {
            panic!("{}: {error}", file.display());
        }
    }
}

fuzz_target!(init: write_seeds(), |data: &[u8]| (chosen().run)(data));
