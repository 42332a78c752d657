//! The bytes of the strings that scripts pass to commands.
//!
//! mlua allocates each time it shows the bytes of a string. Most are the same ones again, such as
//! the names of commands; and Lua has a string only once, and does not move it, so that its address
//! tells which one it is.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use mlua::{BorrowedBytes, LuaString};

/// Copies of short strings by their addresses, as long as nothing is collected.
#[derive(Debug, Default)]
pub(super) struct Words {
    known: HashMap<usize, Box<[u8]>, FixedState>,
    /// Zero where garbage may be collected at any time.
    count_max: usize,
}

/// A string of a script.
pub(super) enum Text {
    /// The address of one of the [`Words`].
    Known(usize),
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
    pub(super) fn find(&mut self, text: &LuaString) -> Text {
        let address = text.to_pointer().addr();
        if self.known.contains_key(&address) {
            return Text::Known(address);
        }
        let bytes = text.as_bytes();
        if bytes.len() > BYTES_MAX || self.known.len() >= self.count_max {
            return Text::Other(bytes);
        }
        self.known.insert(address, Box::from(&*bytes));
        Text::Known(address)
    }

    /// Returns the bytes of a string that was found.
    pub(super) fn bytes<'a>(&'a self, text: &'a Text) -> &'a [u8] {
        match text {
            Text::Known(address) => self.known.get(address).map_or(b"", |bytes| bytes),
            Text::Other(bytes) => bytes,
        }
    }

    /// Forgets all when there is no room, so that the next script has some.
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

/// As long as keys and tokens are.
const BYTES_MAX: usize = 128;

/// Half a megabyte.
const COUNT_MAX: usize = 4096;
