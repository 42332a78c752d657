//! How much a script may do before it is stopped.
//!
//! Redis lets a script run for as long as it likes and only answers other clients with an error
//! meanwhile. Here a script has a number of steps, an amount of memory and a depth, all far above what
//! any known lock script needs. They are counted, not timed, so that every run is the same. Whatever goes
//! through a string is paid for by the string's length.

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

    /// Takes the steps that going through so many bytes once is worth, or returns the text of an error.
    pub(super) fn work(&mut self, bytes: usize) -> Result<(), String> {
        self.steps(bytes / STEP_BYTES)
    }

    /// How many steps were taken.
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

    /// Goes one level deeper, or returns what Lua says when it can't.
    pub(super) fn enter(&mut self) -> Result<(), &'static str> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            Err("stack overflow")
        } else {
            Ok(())
        }
    }

    /// Comes back from a level. A script that ends with an error leaves its levels as they are.
    pub(super) fn leave(&mut self) {
        debug_assert!(self.depth > 0, "every level that is left was entered");
        self.depth -= 1;
    }

    /// How much memory is left, to be reduced by whoever uses it.
    pub(super) fn bytes_left(&mut self) -> &mut usize {
        &mut self.bytes
    }
}

/// How many steps (statements, operations, arguments, rounds of a loop) a script may take. The longest
/// known lock script takes about 20 for each key. This many take 5 to 10 milliseconds, for which no
/// other client of the shard is served.
pub(crate) const STEPS_MAX: usize = 100_000;

/// How many bytes are copied, compared or read as a number in the time of a step.
const STEP_BYTES: usize = 64;

/// How many times longer than copying it hashing a byte by SHA-1 takes.
pub(super) const SHA1_WORK: usize = 8;

/// Steps for writing a number as text, which takes much longer than its few bytes tell.
pub(super) const NUMBER_STEPS: usize = 8;

/// Steps for calling a command, and for each of its arguments, which may be a key.
pub(super) const CALL_STEPS: usize = 8;
pub(super) const CALL_ARGUMENT_STEPS: usize = 2;

/// How often the text of a table's field is compared at most until it is found: the depth of a tree of as many fields
/// as a script can make.
pub(super) const FIELD_WORK: usize = 18;

/// How much memory a script may use in all, counting what it no longer needs: enough for thousands of
/// keys and tokens, and little beside what a node has.
pub(super) const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How deep expressions and calls of a script's own functions may nest while it runs. A level takes
/// about a kilobyte of the thread's stack, of which two megabytes are usual.
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
