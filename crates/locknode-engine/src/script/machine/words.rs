//! The bytes of the strings that scripts pass to commands.
//!
//! mlua allocates each time it shows the bytes of a string. Most are the same ones again, such as
//! the names of commands; and Lua has a string only once, and does not move it, so that its address
//! tells which one it is.

use std::ops::Deref;
use std::rc::Rc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use mlua::{BorrowedBytes, LuaString};

/// Copies of short strings by their addresses, as long as nothing is collected.
#[derive(Debug)]
pub(super) struct Words {
    known: HashMap<usize, Rc<[u8]>, FixedState>,
    /// Zero where garbage may be collected at any time.
    count_max: usize,
}

/// The bytes of a string.
pub(super) enum Word {
    Known(Rc<[u8]>),
    Other(BorrowedBytes),
}

impl Words {
    pub(super) fn new(may_keep: bool) -> Self {
        Self {
            known: HashMap::default(),
            count_max: if may_keep { COUNT_MAX } else { 0 },
        }
    }

    /// Finds a string, or keeps it if it is short.
    pub(super) fn find(&mut self, text: &LuaString) -> Word {
        let address = text.to_pointer().addr();
        if let Some(known) = self.known.get(&address) {
            return Word::Known(Rc::clone(known));
        }
        let bytes = text.as_bytes();
        if bytes.len() <= BYTES_MAX && self.known.len() < self.count_max {
            self.known.insert(address, Rc::from(&*bytes));
        }
        Word::Other(bytes)
    }

    /// Forgets all when there is little room left.
    pub(super) fn make_room(&mut self) {
        if self.known.len() >= self.count_max / 2 {
            self.forget();
        }
    }

    /// Forgets all: what has been collected leaves its address to others.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}

impl Deref for Word {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Known(bytes) => bytes,
            Self::Other(bytes) => bytes,
        }
    }
}

/// As long as keys and tokens are.
const BYTES_MAX: usize = 128;

/// Half a megabyte.
const COUNT_MAX: usize = 4096;
