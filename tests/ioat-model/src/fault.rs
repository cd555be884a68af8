//! Copies that go wrong on purpose.
//!
//! A source that begins with [`MARK`] asks for a fault; the eight bytes after it say which. So a test in
//! the guest decides which copy goes wrong and how, and no other copy does.

/// What a source that asks for a fault begins with: no data is like this by chance.
pub const MARK: [u8; 16] = *b"ioat-model:fault";

/// How a copy goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is made after the next copy of another channel, or after a second without one.
    Late,
    /// Nothing is copied, and the channel halts with an error.
    Halt,
    /// Half of it is copied, and the channel halts with an error.
    Half,
    /// It is copied, but nobody is told by an interrupt.
    Silent,
    /// It never ends, until the channel is reset.
    Hang,
}

impl Fault {
    /// All faults, with their numbers.
    pub const ALL: [(u64, Self); 5] =
        [(1, Self::Late), (2, Self::Halt), (3, Self::Half), (4, Self::Silent), (5, Self::Hang)];

    /// The fault that a source asks for.
    #[must_use]
    pub fn asked(source: &[u8]) -> Option<Self> {
        let number = source.strip_prefix(&MARK)?.first_chunk()?;
        let number = u64::from_le_bytes(*number);
        Self::ALL.into_iter().find(|(known, _)| *known == number).map(|(_, fault)| fault)
    }
}

#[test]
fn faults_are_asked_for() {
    let mut source = MARK.to_vec();
    assert_eq!(Fault::asked(&source), None, "no number");
    source.extend(2_u64.to_le_bytes());
    assert_eq!(Fault::asked(&source), Some(Fault::Halt));
    source[3] ^= 1;
    assert_eq!(Fault::asked(&source), None);
    assert_eq!(Fault::asked(&[]), None);
}
