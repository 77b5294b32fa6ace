//! The text of a key: `gry_`, twelve characters that identify the key, `_`, and 52 secret ones. A
//! one-time code has the same form after `grc_`.
//!
//! Both parts have the alphabet of Crockford's base32 in lower case, without look-alikes: 60 bits
//! identify the key, 256 bits are secret. A text must match exactly: upper case and other lengths
//! are invalid.

use std::{array, fmt, io};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

/// The bytes of a prefix. Each key and each code begins with one, so that scanners of secrets find
/// them.
const PREFIX_BYTES: usize = 4;
const ID_BYTES: usize = 12;
const SECRET_BYTES: usize = 52;
const TOKEN_BYTES: usize = PREFIX_BYTES + ID_BYTES + 1 + SECRET_BYTES;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The SHA-256 of a secret, or 32 other bytes that are stored in its place. A secret of 256 random
/// bits needs no slow hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of no secret.
    pub(super) const ZERO: Self = Self([0; 32]);

    /// Returns random bytes, such as a salt.
    pub(super) fn random() -> io::Result<Self> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        Ok(Self(random))
    }

    pub(super) const fn of_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the digest with these 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes().chunks_exact(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.map(byte).collect();
        bytes.filter(|_| text.len() == 64)?.try_into().ok().map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("a digest is not 64 hexadecimal digits"))
    }
}

/// The characters that identify a key.
pub(super) type KeyId = [u8; ID_BYTES];

/// The kind of a token, which determines the prefix of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A key, which clients send with each request.
    Key,
    /// A code, which is used once.
    Code,
}

impl TokenKind {
    const fn prefix(self) -> &'static [u8; PREFIX_BYTES] {
        match self {
            Self::Key => b"gry_",
            Self::Code => b"grc_",
        }
    }
}

/// A new key or code with its secret. Only the digest of the secret is stored.
pub struct Token {
    kind: TokenKind,
    id: KeyId,
    secret: [u8; SECRET_BYTES],
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl Token {
    /// Creates a key from the system's random numbers.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Self> {
        Self::new(TokenKind::Key)
    }

    /// Creates a one-time code from the system's random numbers.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random_code() -> io::Result<Self> {
        Self::new(TokenKind::Code)
    }

    fn new(kind: TokenKind) -> io::Result<Self> {
        Ok(Self { kind, id: random_characters()?, secret: random_characters()? })
    }

    /// Creates another secret for the key with an id; `None` when the text is no id.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random_for(id: &str) -> io::Result<Option<Self>> {
        let Some(id) = parse_id(id) else { return Ok(None) };
        Ok(Some(Self { kind: TokenKind::Key, id, secret: random_characters()? }))
    }

    /// Returns the characters that identify the key.
    pub fn id(&self) -> String {
        id_text(&self.id)
    }

    /// Returns the digest of the secret.
    pub fn digest(&self) -> Digest {
        digest(&self.secret)
    }

    /// Returns the text that clients send.
    pub fn reveal(&self) -> String {
        let parts: [&[u8]; 4] = [self.kind.prefix(), &self.id, b"_", &self.secret];
        parts.concat().into_iter().map(char::from).collect()
    }
}

/// Returns 5 random bits for each character. A whole byte is drawn for each, and 32 divides 256, so
/// all characters are equally likely.
fn random_characters<const N: usize>() -> io::Result<[u8; N]> {
    let mut random = [0; N];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(random.map(|byte| ALPHABET[usize::from(byte % 32)]))
}

/// Returns a secret without an id.
pub(super) fn random_secret() -> io::Result<String> {
    let characters: [u8; SECRET_BYTES] = random_characters()?;
    Ok(characters.into_iter().map(char::from).collect())
}

/// Returns true for a text with the form of a secret.
pub(super) fn is_secret(text: &[u8]) -> bool {
    text.len() == SECRET_BYTES && text.iter().all(|byte| ALPHABET.contains(byte))
}

/// Returns the id and the secret in the text of a token; `None` when it has another form.
pub(super) fn parse(kind: TokenKind, text: &[u8]) -> Option<(KeyId, &[u8; SECRET_BYTES])> {
    if text.len() != TOKEN_BYTES {
        return None;
    }
    let rest = text.strip_prefix(kind.prefix())?;
    let (id, rest) = rest.split_first_chunk::<ID_BYTES>()?;
    let secret = rest.strip_prefix(b"_")?.first_chunk::<SECRET_BYTES>()?;
    let is_known = |byte: &u8| ALPHABET.contains(byte);
    (id.iter().all(is_known) && secret.iter().all(is_known)).then_some((*id, secret))
}

/// Returns the id in a text; `None` when it has another form.
pub(super) fn parse_id(text: &str) -> Option<KeyId> {
    let id: KeyId = text.as_bytes().try_into().ok()?;
    id.iter().all(|byte| ALPHABET.contains(byte)).then_some(id)
}

/// Returns an id as text.
pub(super) fn id_text(id: &KeyId) -> String {
    id.iter().copied().map(char::from).collect()
}

pub(super) fn digest(secret: &[u8]) -> Digest {
    let sum = Sha256::digest(secret);
    Digest(array::from_fn(|at| sum.get(at).copied().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_new_key_can_be_parsed_and_no_other_text_can() {
        let token = Token::random().unwrap();
        let text = token.reveal();
        assert_eq!(text.len(), 69);
        let (id, secret) = parse(TokenKind::Key, text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(id.to_vec()).unwrap(), token.id());
        assert_eq!(digest(secret), token.digest());
        for length in 0..text.len() {
            assert!(parse(TokenKind::Key, &text.as_bytes()[..length]).is_none(), "{length}");
        }
        let longer = format!("{text}0");
        let other_prefix = text.replacen("gry_", "grx_", 1);
        let other_case = text.to_uppercase();
        let look_alike = format!("{}l", text.strip_suffix(text.chars().last().unwrap()).unwrap());
        for wrong in [&longer, &other_prefix, &other_case, &look_alike, &format!(" {text}")] {
            assert!(parse(TokenKind::Key, wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_code_is_no_key_and_a_key_is_no_code() {
        let (key, code) = (Token::random().unwrap(), Token::random_code().unwrap());
        assert!(code.reveal().starts_with("grc_") && code.reveal().len() == TOKEN_BYTES);
        for (kind, right, wrong) in [(TokenKind::Key, &key, &code), (TokenKind::Code, &code, &key)]
        {
            assert_eq!(parse(kind, right.reveal().as_bytes()).unwrap().0, right.id);
            assert!(parse(kind, wrong.reveal().as_bytes()).is_none());
        }
    }

    #[test]
    fn secrets_differ_in_every_position_and_debug_output_has_none() {
        let tokens: Vec<_> = (0..200).map(|_| Token::random().unwrap()).collect();
        for at in 0..SECRET_BYTES {
            let found: BTreeSet<_> = tokens.iter().map(|token| token.secret[at]).collect();
            assert!(found.len() > 20, "position {at} has {} different characters", found.len());
        }
        let shown = format!("{:?}", tokens[0]);
        assert!(!shown.contains(tokens[0].reveal().rsplit('_').next().unwrap()), "{shown}");
        let rotated = Token::random_for(&tokens[0].id()).unwrap().unwrap();
        assert_eq!(rotated.id, tokens[0].id);
        assert_ne!(rotated.digest(), tokens[0].digest());
        assert!(Token::random_for("no id").unwrap().is_none());
    }
}
