//! Proofs of the secret. Pure: bytes in, tags out.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::Secret;

/// Length of a tag and of a nonce in bytes.
pub(crate) const TAG_BYTES: usize = 32;

/// Proof of the secret.
pub(crate) type Tag = [u8; TAG_BYTES];

/// Fresh random number of one side.
pub(crate) type Nonce = [u8; 32];

/// What a proof is about. Every part goes in with its length, so that no two lists of parts give
/// the same bytes.
#[derive(Clone)]
pub(crate) struct Transcript(Hmac<Sha256>);

impl Transcript {
    /// A transcript under `secret` for one purpose; proofs of different labels never match.
    pub(crate) fn new(secret: &Secret, label: &str) -> Self {
        // A block-sized key is taken as it is: the 32 bytes of the secret, zero-padded.
        let mut key = hmac::digest::Key::<Hmac<Sha256>>::default();
        key[..32].copy_from_slice(secret.expose());
        let mut transcript = Self(Hmac::new(&key));
        zeroize::Zeroize::zeroize(key.as_mut_slice());
        transcript = transcript.part(label.as_bytes());
        transcript
    }

    /// Add a part.
    pub(crate) fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// The proof.
    pub(crate) fn tag(self) -> Tag {
        self.0.finalize().into_bytes().into()
    }

    /// Whether `tag` is the proof; takes the same time for every wrong tag.
    pub(crate) fn verify(self, tag: &Tag) -> bool {
        self.0.verify_slice(tag).is_ok()
    }
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Transcript(hidden)")
    }
}

/// SHA-256 of `bytes`.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_secret_and_split_of_parts_matter() {
        let secret = Secret::from_bytes([1; 32]);
        let start = || Transcript::new(&secret, "one");
        let tag = start().part(b"ab").part(b"c").tag();
        assert!(start().part(b"ab").part(b"c").verify(&tag));
        assert!(!start().part(b"a").part(b"bc").verify(&tag));
        assert!(!Transcript::new(&secret, "two").part(b"ab").part(b"c").verify(&tag));
        let other = Secret::from_bytes([2; 32]);
        assert!(!Transcript::new(&other, "one").part(b"ab").part(b"c").verify(&tag));
    }

    #[test]
    fn one_flipped_bit_fails() {
        let secret = Secret::from_bytes([9; 32]);
        let tag = Transcript::new(&secret, "x").tag();
        for bit in 0..256 {
            let mut wrong = tag;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!Transcript::new(&secret, "x").verify(&wrong));
        }
    }
}
