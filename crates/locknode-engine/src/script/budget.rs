//! How much a script may do before it is stopped.
//!
//! Redis lets a script run as long as it likes, and meanwhile only answers other clients with an
//! error. Here a script has a number of steps, an amount of memory and a depth, all far above what
//! any known lock script needs. They are counted, not timed, so that every run is the same. Any
//! operation that reads a whole string costs in proportion to its length.

/// What a running script has left.
#[derive(Debug)]
pub(super) struct Budget {
    steps: usize,
    bytes: usize,
    depth: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: STEPS_MAX,
            bytes: MEMORY_BYTES_MAX,
            depth: 0,
        }
    }
}

impl Budget {
    /// Takes steps, or returns the text of an error.
    pub(super) fn steps(&mut self, count: usize) -> Result<(), String> {
        match self.steps.checked_sub(count) {
            Some(left) => self.steps = left,
            None => {
                return Err(format!("it took more than {STEPS_MAX} steps"));
            }
        }
        Ok(())
    }

    /// Takes the steps for reading `bytes` bytes once, or returns the text of an error.
    pub(super) fn work(&mut self, bytes: usize) -> Result<(), String> {
        self.steps(bytes / STEP_BYTES)
    }

    /// Returns how many steps were taken.
    pub(super) fn steps_taken(&self) -> usize {
        STEPS_MAX - self.steps
    }

    /// Takes memory, or returns the text of an error.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), String> {
        match self.bytes.checked_sub(bytes) {
            Some(left) => self.bytes = left,
            None => {
                let limit = MEMORY_BYTES_MAX;
                return Err(format!("it used more than {limit} bytes"));
            }
        }
        Ok(())
    }

    /// Goes one level deeper, or returns Lua's error text if that is too deep.
    pub(super) fn enter(&mut self) -> Result<(), &'static str> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            Err("stack overflow")
        } else {
            Ok(())
        }
    }

    /// Returns from a level. A script that ends with an error leaves its levels as they are.
    pub(super) fn leave(&mut self) {
        debug_assert!(self.depth > 0, "every level that is left was entered");
        self.depth -= 1;
    }

    /// The memory left, which callers reduce as they use it.
    pub(super) fn bytes_left(&mut self) -> &mut usize {
        &mut self.bytes
    }
}

/// How many steps (statements, operations, arguments, loop iterations) a script may take. The
/// longest known lock script takes about 20 per key. This many take 5 to 10 milliseconds, during
/// which no other client of the shard is served.
pub(crate) const STEPS_MAX: usize = 100_000;

/// How many bytes can be copied, compared or parsed as a number in the time of a step.
const STEP_BYTES: usize = 64;

/// How many times longer SHA-1 takes per byte than copying.
pub(super) const SHA1_WORK: usize = 8;

/// Steps for formatting a number, which takes much longer than its few bytes suggest.
pub(super) const NUMBER_STEPS: usize = 8;

/// Steps for calling a command, and for each of its arguments, which may be a key.
pub(super) const CALL_STEPS: usize = 8;
pub(super) const CALL_ARGUMENT_STEPS: usize = 2;

/// The maximum number of comparisons to find a table field: the depth of a tree with as many fields
/// as a script can create.
pub(super) const FIELD_WORK: usize = 18;

/// How much memory a script may use in total, including what it no longer needs: enough for
/// thousands of keys and tokens, and small next to what a node has.
pub(super) const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How deep expressions and calls of a script's own functions may nest at run time. A level takes
/// about a kilobyte of the thread's stack, which is usually two megabytes.
const DEPTH_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_up_stays_used_up() {
        let mut budget = Budget::default();
        assert_eq!(budget.steps(STEPS_MAX), Ok(()));
        assert!(budget.steps(1).is_err());
        assert_eq!(budget.spend(MEMORY_BYTES_MAX), Ok(()));
        assert!(budget.spend(1).is_err());
    }
}
