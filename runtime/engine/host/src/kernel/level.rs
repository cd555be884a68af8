//! Which instruction sets this processor has.

use std::fmt;
use std::sync::OnceLock;

use stepccl_plan::{DType, ReduceOp};

use super::dispatch::{dispatch, scale};
use super::isa::Baseline;
use super::job::Job;
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};

/// An instruction set that this processor has; only [`levels`] and [`Level::best`] make one.
#[derive(Clone, Copy, Debug)]
pub struct Level(Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Baseline(Baseline),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Level {
    /// The widest instruction set of this processor, detected once.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| levels().last().copied().unwrap_or(Self(Kind::Baseline(Baseline))))
    }

    /// Name for people: `baseline`, `avx2`, `avx512`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Baseline(_) => "baseline",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(_) => "avx512",
        }
    }

    /// Runs `job` with this instruction set.
    ///
    /// # Safety
    /// As for [`super::reduce`].
    pub(super) unsafe fn run(self, job: Job<'_>, dtype: DType, op: ReduceOp) {
        // SAFETY: the caller vouches for the job's pointers.
        unsafe {
            match self.0 {
                Kind::Baseline(isa) => dispatch(isa, job, dtype, op),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2(isa) => dispatch(isa, job, dtype, op),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512(isa) => dispatch(isa, job, dtype, op),
            }
        }
    }

    /// Runs [`super::scale`] with this instruction set.
    ///
    /// # Safety
    /// As for [`super::scale`].
    pub(super) unsafe fn scale(
        self,
        dst: *mut u8,
        src: *const u8,
        count: usize,
        dtype: DType,
        factor: f64,
    ) {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            match self.0 {
                Kind::Baseline(isa) => scale(isa, dst, src, count, dtype, factor),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2(isa) => scale(isa, dst, src, count, dtype, factor),
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512(isa) => scale(isa, dst, src, count, dtype, factor),
            }
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Every instruction set of this processor, the narrowest first.
#[must_use]
pub fn levels() -> Vec<Level> {
    #[cfg(target_arch = "x86_64")]
    let wider = [
        Avx2::detect().map(|isa| Level(Kind::Avx2(isa))),
        Avx512::detect().map(|isa| Level(Kind::Avx512(isa))),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let wider: [Option<Level>; 0] = [];
    std::iter::once(Level(Kind::Baseline(Baseline))).chain(wider.into_iter().flatten()).collect()
}
