//! Fresh random input, with a seed that is printed.

/// Random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Noise(u64);

impl Noise {
    /// A fresh seed, printed, so that a failure can be run again.
    #[must_use]
    pub fn fresh() -> Self {
        let seed = match std::env::var("STEPCCL_TEST_DRIVER_SEED").map(|text| text.parse()) {
            Ok(Ok(seed)) => seed,
            _ => getrandom::u64().unwrap_or(1),
        };
        println!("     seed {seed}");
        Self::from_seed(seed)
    }

    /// The numbers of a seed.
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, which is not 0.
    pub const fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next() as u8).take(count).collect()
    }
}
