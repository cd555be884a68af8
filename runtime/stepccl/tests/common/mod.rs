//! Ranks as threads, random data, and references in higher precision.
#![expect(dead_code, reason = "every test binary uses a part of it")]

pub mod footprint;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use half::{bf16, f16};
use stepccl::{Communicator, Config, Element, MemoryStore, ReduceOp};

/// Settings of tests: nothing waits long.
pub fn config() -> Config {
    Config {
        // Errors are what many tests are about: nobody is to read them twice.
        log: Some("off".to_owned()),
        timeout: Duration::from_secs(60),
        start_timeout: Duration::from_secs(30),
        ..Config::default()
    }
}

/// Run `body` on every rank of a new communicator, each on a thread; results in order of rank.
pub fn on_ranks<T: Send>(
    ranks: u32,
    config: &Config,
    body: impl Fn(&Communicator) -> T + Sync,
) -> Vec<T> {
    let store = MemoryStore::new();
    let (body, store) = (&body, &store);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                scope.spawn(move || {
                    let communicator =
                        Communicator::new(store, "test.0", rank, ranks, config).unwrap();
                    body(&communicator)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Random numbers that differ from run to run; a failing test prints its seed.
pub struct Random(u64);

static SEEDS: AtomicU64 = AtomicU64::new(0);

impl Random {
    pub fn new() -> Self {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Self::from_seed(time.as_nanos() as u64 ^ (SEEDS.fetch_add(1, Ordering::Relaxed) << 48))
    }

    pub fn from_seed(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn seed(&self) -> u64 {
        self.0
    }

    pub fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// An element type as tests see it.
pub trait Value: Element + PartialEq + std::fmt::Debug {
    /// What outputs hold before: no result looks like it.
    const POISON: Self;
    /// Relative error of one rounding; 0 for integers.
    const ROUNDING: f64;
    fn random(random: &mut Random) -> Self;
    fn exact(self) -> f64;
    /// An exact integer result in this type.
    fn wrapped(exact: i128) -> Self;
    fn integer(self) -> i128;
}

macro_rules! floats {
    ($($t:ty, $rounding:expr, $from:expr, $to:expr;)*) => { $(
        impl Value for $t {
            const POISON: Self = <$t>::NAN;
            const ROUNDING: f64 = $rounding;
            fn random(random: &mut Random) -> Self {
                let unit = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
                $from(unit * 4.0 - 2.0)
            }
            fn exact(self) -> f64 { $to(self) }
            fn wrapped(_: i128) -> Self { unreachable!("floats have no wrapping sum") }
            fn integer(self) -> i128 { unreachable!("floats are compared as f64") }
        }
    )* };
}

floats! {
    f32, 6e-8, |v: f64| v as f32, |v: f32| f64::from(v);
    f64, 1.2e-16, |v: f64| v, |v: f64| v;
    f16, 4.9e-4, f16::from_f64, |v: f16| v.to_f64();
    bf16, 3.95e-3, bf16::from_f64, |v: bf16| v.to_f64();
}

macro_rules! integers {
    ($($t:ty, $poison:expr;)*) => { $(
        impl Value for $t {
            const POISON: Self = $poison;
            const ROUNDING: f64 = 0.0;
            fn random(random: &mut Random) -> Self { random.next() as $t }
            fn exact(self) -> f64 { self.integer() as f64 }
            fn wrapped(exact: i128) -> Self { exact as $t }
            fn integer(self) -> i128 { i128::from(self) }
        }
    )* };
}

integers! {
    i8, -0x5b;
    u8, 0xa5;
    i32, -0x5a5a_5a5b;
    u32, 0xa5a5_a5a5;
    i64, -0x5a5a_5a5a_5a5a_5a5b;
    u64, 0xa5a5_a5a5_a5a5_a5a5;
}

pub fn random_vec<T: Value>(random: &mut Random, len: usize) -> Vec<T> {
    (0..len).map(|_| T::random(random)).collect()
}

/// Whether `result` is the reduction of `inputs` within the rounding of its type.
pub fn check_reduced<T: Value>(
    result: T,
    inputs: &[T],
    op: ReduceOp,
    roundings: f64,
) -> Result<(), String> {
    if T::ROUNDING == 0.0 {
        let sum = || inputs.iter().map(|v| v.integer()).sum::<i128>();
        let folded = |f: &dyn Fn(i128, i128) -> i128| {
            T::wrapped(inputs.iter().map(|v| v.integer()).reduce(f).unwrap())
        };
        let expected = match op {
            ReduceOp::Sum | ReduceOp::PremulSum => T::wrapped(sum()),
            ReduceOp::Prod => folded(&|a, b| T::wrapped(a.wrapping_mul(b)).integer()),
            ReduceOp::BitAnd => folded(&|a, b| a & b),
            ReduceOp::BitOr => folded(&|a, b| a | b),
            ReduceOp::BitXor => folded(&|a, b| a ^ b),
            // The sum wraps before it is divided, as it does in other libraries.
            ReduceOp::Avg => T::wrapped(T::wrapped(sum()).integer() / inputs.len() as i128),
            ReduceOp::Max => T::wrapped(inputs.iter().map(|v| v.integer()).max().unwrap()),
            ReduceOp::Min => T::wrapped(inputs.iter().map(|v| v.integer()).min().unwrap()),
            other => return Err(format!("no reference for {other}")),
        };
        return if result == expected {
            Ok(())
        } else {
            Err(format!("{op} of {inputs:?} is {result:?}, not {expected:?}"))
        };
    }
    let exact: Vec<f64> = inputs.iter().map(|v| v.exact()).collect();
    let sum: f64 = exact.iter().sum();
    let size: f64 = exact.iter().map(|v| v.abs()).sum();
    let (expected, bound) = match op {
        ReduceOp::Prod => {
            let product: f64 = exact.iter().product();
            // One rounding in f32 a rank and one to the type a step; and denormals.
            let each = roundings * T::ROUNDING + exact.len() as f64 * 6e-8;
            (product, product.abs() * each + if T::DTYPE.size() == 2 { 6e-8 } else { 1e-44 })
        }
        ReduceOp::Sum | ReduceOp::PremulSum => (
            sum,
            size * (T::ROUNDING + 6e-8 * f64::from(u8::from(T::DTYPE.size() == 2))) * roundings,
        ),
        ReduceOp::Avg => {
            let n = exact.len() as f64;
            (
                sum / n,
                size / n
                    * (T::ROUNDING + 1.2e-7 * f64::from(u8::from(T::DTYPE.size() == 2)))
                    * (roundings + 1.0),
            )
        }
        ReduceOp::Max => (exact.iter().copied().fold(f64::NEG_INFINITY, f64::max), 0.0),
        ReduceOp::Min => (exact.iter().copied().fold(f64::INFINITY, f64::min), 0.0),
        other => return Err(format!("no reference for {other}")),
    };
    let error = (result.exact() - expected).abs();
    if error <= bound {
        Ok(())
    } else {
        Err(format!(
            "{op} of {inputs:?} is {result:?}, not {expected} ± {bound:e} (off by {error:e})"
        ))
    }
}
