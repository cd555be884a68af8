//! The job's secret.

use std::fmt;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// Shortest text taken for a secret, in bytes; a shorter one can be guessed from a handshake.
const MIN_TEXT_BYTES: usize = 16;

/// Longest text taken for a secret, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Why a secret cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Too short or too long.
    #[error(
        "the secret from {source_name} has {bytes} bytes; {MIN_TEXT_BYTES} to {MAX_TEXT_BYTES} are \
         needed: make one with `openssl rand -hex 32` and give every rank the same"
    )]
    Length {
        /// Where it came from.
        source_name: String,
        /// Its length.
        bytes: usize,
    },
    /// The file or the environment cannot be read.
    #[error("cannot read the secret from {source_name}: {message}")]
    Unreadable {
        /// Where it should come from.
        source_name: String,
        /// What the system said.
        message: String,
    },
}

/// 32 bytes that every rank of a job knows and nobody else.
///
/// Wiped when dropped; `Debug` does not show it.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// These 32 bytes, which the caller took from a good random source.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A secret from text of 16 to 4096 bytes; white space at both ends does not count.
    ///
    /// # Errors
    ///
    /// [`SecretError::Length`].
    pub fn from_text(text: &str) -> Result<Self, SecretError> {
        Self::derive(text.trim().as_bytes(), "the text given")
    }

    /// A secret from the text of a file.
    ///
    /// # Errors
    ///
    /// [`SecretError::Unreadable`], [`SecretError::Length`].
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        let name = path.display().to_string();
        let unreadable = |error: std::io::Error| SecretError::Unreadable {
            source_name: name.clone(),
            message: error.to_string(),
        };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::with_capacity(MAX_TEXT_BYTES + 2);
        let read = file.take(MAX_TEXT_BYTES as u64 + 2).read_to_end(&mut bytes);
        let secret = read.map_err(unreadable).and_then(|_| Self::derive(bytes.trim_ascii(), &name));
        bytes.zeroize();
        secret
    }

    /// A secret from an environment variable, `None` where it is not set. Users know it as
    /// `STEPCCL_SECRET`.
    ///
    /// # Errors
    ///
    /// [`SecretError::Unreadable`] where it is not UTF-8, [`SecretError::Length`].
    pub fn from_env(variable: &str) -> Result<Option<Self>, SecretError> {
        match std::env::var(variable) {
            Ok(mut text) => {
                let secret = Self::derive(text.trim().as_bytes(), variable);
                text.zeroize();
                secret.map(Some)
            }
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(error) => Err(SecretError::Unreadable {
                source_name: variable.to_owned(),
                message: error.to_string(),
            }),
        }
    }

    /// A fresh random secret.
    ///
    /// # Errors
    ///
    /// [`SecretError::Unreadable`] where the system has no random bytes.
    pub fn generate() -> Result<Self, SecretError> {
        let mut secret = Self([0; 32]);
        getrandom::fill(&mut secret.0).map_err(|error| SecretError::Unreadable {
            source_name: "the system's random source".to_owned(),
            message: error.to_string(),
        })?;
        Ok(secret)
    }

    fn derive(text: &[u8], source_name: &str) -> Result<Self, SecretError> {
        if !(MIN_TEXT_BYTES..=MAX_TEXT_BYTES).contains(&text.len()) {
            return Err(SecretError::Length {
                source_name: source_name.to_owned(),
                bytes: text.len(),
            });
        }
        let mut hash = Sha256::new();
        hash.update(b"stepccl secret from text\0");
        hash.update(text);
        Ok(Self(hash.finalize().into()))
    }

    /// The bytes, for the keyed hash and for the store entry of a generated secret.
    pub(crate) const fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_file_agree_and_white_space_does_not_count() {
        let text = "0123456789abcdef";
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{text}\n")).unwrap();
        let one = Secret::from_text(text).unwrap();
        assert_eq!(one.expose(), Secret::from_file(file.path()).unwrap().expose());
        assert_ne!(one.expose(), Secret::from_text("0123456789abcdeF").unwrap().expose());
    }

    #[test]
    fn bad_lengths_are_refused_with_the_number() {
        let error = Secret::from_text(" short ").unwrap_err();
        assert!(error.to_string().contains("has 5 bytes"), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'a'; 9000]).unwrap();
        assert!(matches!(Secret::from_file(file.path()), Err(SecretError::Length { .. })));
        let gone = Secret::from_file(Path::new("/nonexistent/secret")).unwrap_err();
        assert!(gone.to_string().contains("/nonexistent/secret"), "{gone}");
        assert!(Secret::from_env("STEPCCL_TEST_NO_SUCH_VARIABLE").unwrap().is_none());
    }

    #[test]
    fn debug_hides_it() {
        assert_eq!(format!("{:?}", Secret::from_bytes([0x41; 32])), "Secret(hidden)");
    }
}
