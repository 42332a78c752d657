//! Which clients a TLS port serves, as `tls-auth-clients` says it.

/// Whether TLS clients must have a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsClients {
    /// They are not asked for one.
    No,
    /// They must have one.
    Yes,
    /// They need none, but one that they have must be good.
    Optional,
}

impl TlsClients {
    /// In the order of Redis's error text.
    const WORDS: [(&str, Self); 3] = [
        ("no", Self::No),
        ("yes", Self::Yes),
        ("optional", Self::Optional),
    ];

    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let named = |(word, _): &&(&str, Self)| text.eq_ignore_ascii_case(word.as_bytes());
        match Self::WORDS.iter().find(named) {
            Some((_, clients)) => Ok(*clients),
            None => Err("argument(s) must be one of the following: no, yes, optional".to_owned()),
        }
    }

    pub(crate) fn word(self) -> &'static str {
        let named = |(_, clients): &&(&str, Self)| *clients == self;
        Self::WORDS.iter().find(named).map_or("", |(word, _)| word)
    }
}
