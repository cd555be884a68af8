//! The clock of records: the processor's counter where it can be trusted.
//!
//! Reading it costs some nanoseconds and needs no system call. It is turned into a time by whoever
//! reads the record: see [`crate::Timeline`].

use std::sync::OnceLock;

use nix::time::{ClockId, clock_gettime};

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// The time stamp counter of x86_64, invariant.
    Tsc,
    /// `CNTVCT_EL0` of aarch64.
    Cntvct,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    Monotonic,
}

impl ClockKind {
    /// Number in the header of a record.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Tsc => 1,
            Self::Cntvct => 2,
            Self::Monotonic => 3,
        }
    }

    /// The kind with this number.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Tsc),
            2 => Some(Self::Cntvct),
            3 => Some(Self::Monotonic),
            _ => None,
        }
    }

    /// Name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Cntvct => "cntvct",
            Self::Monotonic => "monotonic",
        }
    }

    /// The best clock of this machine.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<ClockKind> = OnceLock::new();
        *BEST.get_or_init(|| {
            // Miri has no processor to ask.
            let hardware = if cfg!(miri) { None } else { hardware() };
            hardware.unwrap_or(Self::Monotonic)
        })
    }

    /// Ticks now. A kind of another processor reads `CLOCK_MONOTONIC`.
    #[inline]
    #[must_use]
    pub fn ticks(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Tsc => {
                // SAFETY:
                // - RDTSC is there on every x86_64 and touches no memory. Where the system forbids
                //   it to user code, `best` is never asked to choose it: see `hardware`.
                unsafe { core::arch::x86_64::_rdtsc() }
            }
            #[cfg(target_arch = "aarch64")]
            Self::Cntvct => {
                let ticks: u64;
                // SAFETY:
                // - Linux lets user code read the virtual counter (or emulates it); it touches no
                //   memory and no flags.
                unsafe {
                    core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
                }
                ticks
            }
            _ => now(ClockId::CLOCK_MONOTONIC),
        }
    }
}

/// A moment on three clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Ticks of the record's clock.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME` in nanoseconds.
    pub realtime_ns: u64,
}

impl Moment {
    /// Now. The three are read within some tens of nanoseconds of one another: of a few tries, the
    /// one that took least.
    #[must_use]
    pub fn now(kind: ClockKind) -> Self {
        const TRIES: usize = 5;
        let read = || {
            let before = kind.ticks();
            let monotonic_ns = now(ClockId::CLOCK_MONOTONIC);
            let realtime_ns = now(ClockId::CLOCK_REALTIME);
            let took = kind.ticks().wrapping_sub(before);
            (took, Self { ticks: before.wrapping_add(took / 2), monotonic_ns, realtime_ns })
        };
        let mut best = read();
        for _ in 1..TRIES {
            let next = read();
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }
}

fn now(clock: ClockId) -> u64 {
    // Both clocks are always there; before 1970 there was no Linux.
    clock_gettime(clock).map_or(0, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec().unsigned_abs())
    })
}

/// The processor's counter, if it runs at one rate on all cores and the system allows it.
#[cfg(target_arch = "x86_64")]
fn hardware() -> Option<ClockKind> {
    const EXTENDED: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    let invariant = core::arch::x86_64::__cpuid(EXTENDED).eax >= POWER
        && core::arch::x86_64::__cpuid(POWER).edx & INVARIANT != 0;
    (invariant && kernel_trusts_tsc() && tsc_is_allowed()).then_some(ClockKind::Tsc)
}

/// Always there and always at one rate.
#[cfg(target_arch = "aarch64")]
fn hardware() -> Option<ClockKind> {
    Some(ClockKind::Cntvct)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn hardware() -> Option<ClockKind> {
    None
}

/// Whether the kernel has not given the counter up for a slower clock.
#[cfg(target_arch = "x86_64")]
fn kernel_trusts_tsc() -> bool {
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    // Only these mean that it watched the counter and found it wrong. Where nothing can be read,
    // as in a sandbox, it is not trusted.
    std::fs::read_to_string(CLOCK)
        .is_ok_and(|name| !matches!(name.trim(), "" | "hpet" | "acpi_pm" | "jiffies"))
}

/// Whether this process may read the counter (`PR_SET_TSC`): reading ends it where it may not.
#[cfg(target_arch = "x86_64")]
fn tsc_is_allowed() -> bool {
    const PR_GET_TSC: nix::libc::c_int = 25;
    const PR_TSC_ENABLE: nix::libc::c_int = 1;
    let mut mode: nix::libc::c_int = 0;
    // SAFETY:
    // - PR_GET_TSC writes one int at the address of the second argument, which is `mode`.
    let answer = unsafe { nix::libc::prctl(PR_GET_TSC, &raw mut mode) };
    answer == 0 && mode == PR_TSC_ENABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_do_not_go_back_on_a_thread() {
        let kind = ClockKind::best();
        let mut last = kind.ticks();
        for _ in 0..10_000 {
            let next = kind.ticks();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn kinds_keep_their_numbers() {
        for kind in [ClockKind::Tsc, ClockKind::Cntvct, ClockKind::Monotonic] {
            assert_eq!(ClockKind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(ClockKind::from_number(0), None);
    }
}
