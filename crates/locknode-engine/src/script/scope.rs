//! Resolves names to frame slots while a script is parsed.
//!
//! Functions of a script can only be called, not passed around, so a function never outlives the
//! frames around it: an outer local is simply a slot of the main frame and no closure is needed.

/// The meaning of a local name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    Local(usize),
    /// A local of the main chunk seen from inside a function.
    Outer(usize),
    Function(usize),
}

/// The state to restore when a block ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    names: usize,
    slots: usize,
}

/// The names visible at one point of the script.
#[derive(Debug, Default)]
pub(super) struct Scope<'s> {
    main: Frame<'s>,
    inner: Option<Frame<'s>>,
}

#[derive(Debug, Default)]
struct Frame<'s> {
    names: Vec<(&'s [u8], Binding)>,
    slots: usize,
    size: usize,
    loops: usize,
}

impl<'s> Scope<'s> {
    /// Declares a local and returns its slot, or `None` when the function has too many.
    pub(super) fn declare(&mut self, name: &'s [u8]) -> Option<usize> {
        let frame = self.frame_mut();
        if frame.slots >= LOCALS_MAX {
            return None;
        }
        let slot = frame.slots;
        frame.names.push((name, Binding::Local(slot)));
        frame.slots += 1;
        frame.size = frame.size.max(frame.slots);
        Some(slot)
    }

    /// Declares a local function.
    pub(super) fn declare_function(&mut self, name: &'s [u8], index: usize) {
        self.frame_mut()
            .names
            .push((name, Binding::Function(index)));
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<Binding> {
        let newest = |frame: &Frame<'s>| {
            frame
                .names
                .iter()
                .rev()
                .find(|(known, _)| *known == name)
                .map(|&(_, binding)| binding)
        };
        let Some(inner) = &self.inner else {
            return newest(&self.main);
        };
        newest(inner).or_else(|| {
            newest(&self.main).map(|binding| match binding {
                Binding::Local(slot) => Binding::Outer(slot),
                other => other,
            })
        })
    }

    /// The slot that the next local will take.
    pub(super) fn next_slot(&self) -> usize {
        self.frame().slots
    }

    pub(super) fn open(&self) -> Mark {
        Mark {
            names: self.frame().names.len(),
            slots: self.frame().slots,
        }
    }

    pub(super) fn close(&mut self, mark: Mark) {
        let frame = self.frame_mut();
        frame.names.truncate(mark.names);
        frame.slots = mark.slots;
    }

    /// Starts a function. Returns `false` inside another one.
    pub(super) fn enter_function(&mut self) -> bool {
        if self.inner.is_some() {
            return false;
        }
        self.inner = Some(Frame::default());
        true
    }

    /// Ends a function and returns how many slots it needs.
    pub(super) fn leave_function(&mut self) -> usize {
        self.inner.take().map_or(0, |frame| frame.size)
    }

    /// How many slots the main frame needs.
    pub(super) fn main_size(&self) -> usize {
        self.main.size
    }

    pub(super) fn enter_loop(&mut self) {
        self.frame_mut().loops += 1;
    }

    pub(super) fn leave_loop(&mut self) {
        self.frame_mut().loops -= 1;
    }

    pub(super) fn in_loop(&self) -> bool {
        self.frame().loops > 0
    }

    pub(super) fn in_function(&self) -> bool {
        self.inner.is_some()
    }

    fn frame(&self) -> &Frame<'s> {
        self.inner.as_ref().unwrap_or(&self.main)
    }

    fn frame_mut(&mut self) -> &mut Frame<'s> {
        self.inner.as_mut().unwrap_or(&mut self.main)
    }
}

/// Lua 5.1's own limit of locals in one function.
pub(super) const LOCALS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_names_hide_outer_ones_until_their_block_ends() {
        let mut scope = Scope::default();
        scope.declare(b"a");
        let mark = scope.open();
        scope.declare(b"a");
        assert_eq!(scope.find(b"a"), Some(Binding::Local(1)));
        scope.close(mark);
        assert_eq!(scope.find(b"a"), Some(Binding::Local(0)));
        assert_eq!(scope.main_size(), 2);
    }

    #[test]
    fn functions_see_the_locals_of_the_main_chunk_as_outer() {
        let mut scope = Scope::default();
        scope.declare(b"a");
        assert!(scope.enter_function());
        scope.declare(b"b");
        assert_eq!(scope.find(b"a"), Some(Binding::Outer(0)));
        assert_eq!(scope.find(b"b"), Some(Binding::Local(0)));
        assert!(!scope.enter_function());
    }

    #[test]
    fn a_function_has_at_most_two_hundred_locals() {
        let mut scope = Scope::default();
        for _ in 0..LOCALS_MAX {
            assert!(scope.declare(b"a").is_some());
        }
        assert_eq!(scope.declare(b"a"), None);
    }
}
