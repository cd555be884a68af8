//! `STEPCCL_` variables: bad values, and names that are none.

use stepccl::{Error, Review};

use super::finding::Finding;
use super::scene::Scene;
use crate::outcome::printable;

pub(super) fn check(_scene: &Scene) -> Finding {
    let Review { settings, errors, warnings } = Review::of_process();
    let set = settings.iter().filter(|s| s.source == stepccl::Source::Environment).count();
    judge(set, &errors, &warnings)
}

fn judge(set: usize, errors: &[Error], warnings: &[String]) -> Finding {
    let bad = errors.iter().filter_map(|error| match error {
        Error::InvalidArgument { name, .. } => Some((*name).to_owned()),
        _ => None,
    });
    // A line begins with the name.
    let unknown = warnings.iter().filter_map(|line| line.split(' ').next().map(str::to_owned));
    let names: Vec<String> = bad.chain(unknown).map(|name| printable(&name)).collect();
    let lines = errors.iter().map(ToString::to_string).chain(warnings.iter().cloned());
    let lines: Vec<String> = lines.map(|line| printable(&line)).collect();
    let fix = format!("unset {}  # or set what the rule says: stepccl config", names.join(" "));
    match (errors.is_empty(), warnings.is_empty()) {
        (false, _) => Finding::fail(lines.join("; "), fix),
        (true, false) => Finding::warn(lines.join("; "), fix),
        (true, true) if set == 0 => Finding::ok("none is set"),
        (true, true) => Finding::ok(format!("{set} are set, all good (stepccl config shows them)")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn bad_values_fail_and_slips_warn() {
        assert_eq!(judge(0, &[], &[]).verdict, Verdict::Ok);
        let slip = "STEPCCL_LOGS is not a setting".to_owned();
        let found = judge(0, &[], std::slice::from_ref(&slip));
        assert_eq!(found.verdict, Verdict::Warn);
        assert!(found.fix.unwrap().starts_with("unset STEPCCL_LOGS "));
        let bad = Error::InvalidArgument {
            name: "STEPCCL_LOG",
            value: "loud".to_owned(),
            rule: "must be one of these".to_owned(),
        };
        let found = judge(1, &[bad], &[slip]);
        assert_eq!(found.verdict, Verdict::Fail);
        assert!(found.fix.unwrap().starts_with("unset STEPCCL_LOG STEPCCL_LOGS "));
    }
}
