//! The clock: every wait and every flight record reads it.

use std::time::{Duration, Instant};

use super::finding::Finding;
use super::scene::Scene;

const FOLDER: &str = "devices/system/clocksource/clocksource0";
/// Sources that are read without a system call.
const FAST: [&str; 5] =
    ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page", "timebase"];
/// Readings that are timed at once.
const READINGS: u32 = 1000;
/// Time for all of them.
const LIMIT: Duration = Duration::from_millis(20);

pub(super) fn check(scene: &Scene) -> Finding {
    let source = scene.sys(&format!("{FOLDER}/current_clocksource"));
    let possible = scene.sys(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    judge(source.as_deref(), &possible, reading())
}

/// Mean time of a reading, in nanoseconds.
fn reading() -> f64 {
    let start = Instant::now();
    let mut last = Duration::ZERO;
    let mut readings = 0;
    while readings < READINGS && last < LIMIT {
        last = start.elapsed();
        readings += 1;
    }
    last.as_secs_f64() * 1e9 / f64::from(readings)
}

fn judge(source: Option<&str>, possible: &str, reading_ns: f64) -> Finding {
    let Some(source) = source else {
        return Finding::not_here(format!("no source is told; a reading takes {reading_ns:.0} ns"));
    };
    let fact = format!("{source}, a reading takes {reading_ns:.0} ns");
    if FAST.contains(&source) {
        return Finding::ok(fact);
    }
    let better = FAST.iter().find(|fast| possible.split_whitespace().any(|p| p == **fast));
    let fix = match better {
        Some(better) => format!("echo {better} | sudo tee /sys/{FOLDER}/current_clocksource"),
        None => "sudo dmesg | grep -i -e tsc -e clocksource  # why there is none faster".to_owned(),
    };
    Finding::warn(format!("{fact}: each is a system call"), fix)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn slow_sources_have_a_way_out() {
        assert_eq!(judge(Some("tsc"), "", 20.0).verdict, Verdict::Ok);
        let slow = judge(Some("hpet"), "hpet tsc acpi_pm", 900.0);
        assert!(slow.fix.unwrap().starts_with("echo tsc | sudo tee /sys/devices"));
        assert!(judge(Some("hpet"), "hpet", 900.0).fix.unwrap().contains("dmesg"));
        assert_eq!(judge(None, "", 1.0).verdict, Verdict::NotHere);
        assert!(reading() >= 0.0);
    }
}
