//! A password as the node keeps it: its SHA-256, as Redis does.

use std::fmt;
use std::hint::black_box;

/// The SHA-256 of a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Password([u8; 32]);

impl Password {
    /// Hashes a password.
    pub(crate) fn of(text: &[u8]) -> Self {
        Self(hmac_sha256::Hash::hash(text))
    }

    /// Reads 64 hexadecimal digits, in lower case as Redis wants them.
    pub(crate) fn from_hex(text: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        if text.len() != 2 * hash.len() {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(hash))
    }

    /// Returns 64 hexadecimal digits.
    pub(crate) fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares in a time that reveals nothing about either.
    pub(crate) fn is(self, other: Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.fold(0, |difference, (a, b)| difference | black_box(a ^ b)) == 0
    }
}

/// Hides even the hash.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha_256() {
        for (text, hex) in [
            (
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ] {
            let password = Password::of(text.as_bytes());
            assert_eq!(password.to_hex(), hex);
            assert_eq!(Password::from_hex(hex.as_bytes()), Some(password));
        }
    }

    #[test]
    fn a_password_differs_in_any_byte() {
        let password = Password::of(b"secret");
        assert!(password.is(Password::of(b"secret")));
        for at in 0..32 {
            let mut other = password;
            other.0[at] ^= 1;
            assert!(!password.is(other), "byte {at}");
        }
    }

    #[test]
    fn only_lower_case_hexadecimal_digits_are_a_hash() {
        let hex = Password::of(b"").to_hex();
        for bad in [
            hex.to_uppercase(),
            hex[1..].to_owned(),
            format!("{hex}0"),
            format!("g{}", &hex[1..]),
            String::new(),
        ] {
            assert_eq!(Password::from_hex(bad.as_bytes()), None, "{bad}");
        }
    }
}
