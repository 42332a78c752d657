//! What a fake was sent.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// One request that came.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its place among all requests to all fakes of the process.
    pub number: u64,
    /// The connection that it came by, counted from 1 for each node.
    pub connection: usize,
    /// The name and the arguments.
    pub args: Vec<Vec<u8>>,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a lock client wants with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A lock: SET with NX.
    Acquire,
    /// More time: a script with a token and a time, SET with IFEQ.
    Extend,
    /// To give it back: a script with a token, DELEX, DELIFEQ.
    Release,
    /// Anything else: greetings, questions.
    Other,
}

/// Which requests a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum On {
    /// Those with the purpose.
    Purpose(Purpose),
    /// Those with the name, in upper case.
    Command(String),
    /// All, greetings included.
    Anything,
}

impl From<Purpose> for On {
    fn from(purpose: Purpose) -> Self {
        Self::Purpose(purpose)
    }
}

impl From<&str> for On {
    fn from(name: &str) -> Self {
        Self::Command(name.to_ascii_uppercase())
    }
}

impl On {
    /// Whether the request is meant.
    pub fn matches(&self, request: &Received) -> bool {
        match self {
            Self::Purpose(purpose) => request.purpose == *purpose,
            Self::Command(name) => request.name() == *name,
            Self::Anything => true,
        }
    }
}

impl Received {
    /// The next request to arrive. `script` is the text that an EVALSHA stands for, where it is known.
    pub(super) fn arrive(connection: usize, args: Vec<Vec<u8>>, script: Option<&str>) -> Self {
        let purpose = Purpose::of(&args, script);
        Self {
            number: ARRIVALS.fetch_add(1, Ordering::SeqCst),
            connection,
            args,
            purpose,
        }
    }

    /// The command's name in upper case.
    pub fn name(&self) -> String {
        self.args
            .first()
            .map(|name| upper(name))
            .unwrap_or_default()
    }

    /// Whether one of the arguments is that text.
    pub fn mentions(&self, text: &str) -> bool {
        self.args.iter().any(|arg| arg == text.as_bytes())
    }

    /// The argument at an index, as text; 0 is the name.
    pub fn text(&self, index: usize) -> String {
        let arg = self.args.get(index).map(Vec::as_slice);
        String::from_utf8_lossy(arg.unwrap_or_default()).into_owned()
    }
}

impl Purpose {
    fn of(args: &[Vec<u8>], script: Option<&str>) -> Self {
        let word = |index: usize| args.get(index).map(|arg| upper(arg)).unwrap_or_default();
        let has = |option: &str| args.iter().skip(3).any(|arg| upper(arg) == option);
        match word(0).as_str() {
            "SET" if has("NX") => Self::Acquire,
            "SET" if has("IFEQ") => Self::Extend,
            "LOCK.ACQUIRE" => Self::Acquire,
            "LOCK.EXTEND" => Self::Extend,
            "DELEX" | "DELIFEQ" | "LOCK.RELEASE" => Self::Release,
            name @ ("EVAL" | "EVALSHA") => {
                let text = match name {
                    "EVAL" => word(1),
                    _ => script.unwrap_or_default().to_ascii_uppercase(),
                };
                let keys: usize = word(2).parse().unwrap_or(0);
                let values = args.len().saturating_sub(3 + keys);
                if text.contains("PEXPIRE") || (text.is_empty() && values > 1) {
                    Self::Extend
                } else if text.contains("DEL") || (text.is_empty() && values == 1) {
                    Self::Release
                } else {
                    Self::Other
                }
            }
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} ({})", self.number, self.connection)?;
        for arg in &self.args {
            let shown = arg.get(..SHOWN_MAX).unwrap_or(arg);
            write!(f, " {}", shown.escape_ascii())?;
        }
        Ok(())
    }
}

fn upper(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_uppercase()
}

/// Requests that have arrived at any fake of the process.
static ARRIVALS: AtomicU64 = AtomicU64::new(1);

/// A token or a SHA1 fits; a script is cut.
const SHOWN_MAX: usize = 48;
