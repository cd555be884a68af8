//! Runs inputs once each, without a fuzzer.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::target::{ALL, Target};

/// `TARGET FILE...`: run the target over its first inputs, then over each file.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let target = arguments.next().and_then(|name| Target::find(name.to_str()?));
    let Some(target) = target else {
        eprintln!("usage: stepccl-fuzz TARGET FILE...\ntargets:");
        for target in ALL {
            eprintln!("  {:<12} {}", target.name, target.about);
        }
        return ExitCode::from(2);
    };
    for seed in (target.seeds)() {
        (target.run)(&seed);
    }
    for file in arguments {
        let file = Path::new(&file);
        match std::fs::read(file) {
            Ok(data) => (target.run)(&data),
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                return ExitCode::FAILURE;
            }
        }
        println!("{}: no fault", file.display());
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first inputs, each cut short at several places and with some bits turned.
    #[test]
    fn no_target_fails_near_its_seeds() {
        for target in ALL {
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{} has no seeds", target.name);
            for mut seed in seeds {
                (target.run)(&seed);
                for cut in [0, 1, seed.len() / 2, seed.len().saturating_sub(1)] {
                    (target.run)(&seed[..cut.min(seed.len())]);
                }
                for at in (0..seed.len()).step_by(seed.len().div_ceil(16).max(1)) {
                    seed[at] ^= 1 << (at % 8);
                    (target.run)(&seed);
                }
            }
        }
    }

    #[test]
    fn an_unknown_target_is_refused() {
        assert_eq!(main(vec!["text".into()]), ExitCode::SUCCESS);
        assert_eq!(main(vec!["no such".into()]), ExitCode::from(2));
        assert_eq!(main(vec![ALL[0].name.into(), "/no/such".into()]), ExitCode::FAILURE);
    }
}
