//! The option words of SET, MSETEX, GETEX and DELEX, in any case.
//!
//! A word is recognised by its length and its folded bytes, so that the options of an acquire cost
//! a few instructions each. Each command decides what a word means and which combinations are
//! valid.

/// A word that a command may find among its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionWord {
    Nx,
    Xx,
    Get,
    KeepTtl,
    Persist,
    Ex,
    Px,
    ExAt,
    PxAt,
    IfEq,
    IfNe,
    IfDeq,
    IfDne,
}

impl OptionWord {
    /// Returns the option that the bytes spell; `None` when they spell none.
    #[inline]
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        let word = match *word {
            [a, b] => match &[a | FOLD, b | FOLD] {
                b"nx" => Self::Nx,
                b"px" => Self::Px,
                b"ex" => Self::Ex,
                b"xx" => Self::Xx,
                _ => return None,
            },
            [a, b, c] if &[a | FOLD, b | FOLD, c | FOLD] == b"get" => Self::Get,
            [a, b, c, d] => match &[a | FOLD, b | FOLD, c | FOLD, d | FOLD] {
                b"ifeq" => Self::IfEq,
                b"ifne" => Self::IfNe,
                b"pxat" => Self::PxAt,
                b"exat" => Self::ExAt,
                _ => return None,
            },
            [a, b, c, d, e] => match &[a | FOLD, b | FOLD, c | FOLD, d | FOLD, e | FOLD] {
                b"ifdeq" => Self::IfDeq,
                b"ifdne" => Self::IfDne,
                _ => return None,
            },
            _ if word.eq_ignore_ascii_case(b"keepttl") => Self::KeepTtl,
            _ if word.eq_ignore_ascii_case(b"persist") => Self::Persist,
            _ => return None,
        };
        Some(word)
    }

    /// Returns whether the words are NX and PX, for less than it takes to find out what each is.
    #[inline]
    pub(crate) fn are_nx_px(nx: &[u8], px: &[u8]) -> bool {
        let ([n, x], [p, y]) = (nx, px) else {
            return false;
        };
        [n | FOLD, x | FOLD, p | FOLD, y | FOLD] == *b"nxpx"
    }
}

/// Sets the bit that selects lower case. Only the two cases of a letter become that letter.
const FOLD: u8 = 0x20;

#[cfg(test)]
mod tests {
    use super::OptionWord;

    #[test]
    fn words_match_in_any_case_and_only_whole() {
        let rows = [
            ("nx", Some(OptionWord::Nx)),
            ("NX", Some(OptionWord::Nx)),
            ("nX", Some(OptionWord::Nx)),
            ("XX", Some(OptionWord::Xx)),
            ("eX", Some(OptionWord::Ex)),
            ("pX", Some(OptionWord::Px)),
            ("Get", Some(OptionWord::Get)),
            ("exAT", Some(OptionWord::ExAt)),
            ("PXAt", Some(OptionWord::PxAt)),
            ("ifeq", Some(OptionWord::IfEq)),
            ("IFNE", Some(OptionWord::IfNe)),
            ("IFDeq", Some(OptionWord::IfDeq)),
            ("ifDNE", Some(OptionWord::IfDne)),
            ("KeepTTL", Some(OptionWord::KeepTtl)),
            ("persist", Some(OptionWord::Persist)),
            ("", None),
            ("n", None),
            ("nx ", None),
            ("N\u{18}", None),
            ("\u{e}x", None),
            ("set", None),
            ("ifxx", None),
            ("ifdxx", None),
            ("keepttl1", None),
        ];
        for (word, want) in rows {
            assert_eq!(OptionWord::of(word.as_bytes()), want, "{word:?}");
        }
    }
}
