//! Runs in a guest whose kernel has the driver: one line a test, and a count at the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use stepccl_device::{Client, Device, DeviceEnd};
use stepccl_driver_tests::{cases, conformance};

/// The driver of this machine.
struct Driver;

impl conformance::Target for Driver {
    type Memory = DeviceEnd;

    fn client(&self, entries: u32) -> Client<DeviceEnd> {
        Device::open().unwrap().ring(entries).unwrap()
    }
}

/// Counts of what was run.
#[derive(Default)]
struct Count {
    passed: u32,
    failed: u32,
}

impl Count {
    fn run(&mut self, name: &str, case: impl FnOnce()) {
        println!("run  - {name}");
        // The panic prints its own message.
        if catch_unwind(AssertUnwindSafe(case)).is_ok() {
            self.passed += 1;
            println!("ok   - {name}");
        } else {
            self.failed += 1;
            println!("FAILED - {name}");
        }
    }
}

fn main() -> ExitCode {
    let only = std::env::args().nth(1).unwrap_or_default();
    let mut count = Count::default();
    for (name, case) in conformance::cases::<Driver>() {
        if name.contains(&only) {
            count.run(name, || case(&Driver));
        }
    }
    for (name, case) in cases::ALL {
        if name.contains(&only) {
            count.run(name, case);
        }
    }
    println!("guest: {} passed, {} failed", count.passed, count.failed);
    ExitCode::from(u8::from(count.failed > 0))
}
