//! How a command reads and changes the value of a key.

use locknode_resp::Encoder;

use super::{BYTES_MAX, Kind, Value};
use crate::command::refusal;
use crate::entry::Entry;
use crate::time::Deadline;

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongType;

impl WrongType {
    #[cold]
    pub(crate) fn refuse(self, reply: &mut Encoder<'_>) {
        refusal::wrong_type(reply);
    }
}

impl Entry<'_> {
    /// Returns the value of a live key.
    pub(crate) fn collection(&self) -> Option<&Value> {
        self.shard.collection(self.probe)
    }

    /// Returns the value, or `None` without a key.
    ///
    /// # Errors
    ///
    /// Refuses a key that holds something else.
    pub(crate) fn read<T: Kind>(&self) -> Result<Option<&T>, WrongType> {
        if !self.is_live() {
            return Ok(None);
        }
        let value = self.collection().and_then(T::of);
        value.map(Some).ok_or(WrongType)
    }

    /// Changes the value by `work`, which adds up to `adds` bytes, removes nothing, and returns whether
    /// it changed anything. Without a key `work` begins with an empty value, and creates the key,
    /// without a deadline, if it leaves something.
    ///
    /// Replies with the refusal when the key holds something else, may not be held, or grows too large.
    pub(crate) fn grow<T: Kind>(
        mut self,
        adds: usize,
        reply: &mut Encoder<'_>,
        work: impl FnOnce(&mut T, &mut Encoder<'_>) -> bool,
    ) {
        let before = match self.read::<T>() {
            Ok(_) => self.collection().map_or(0, Value::bytes),
            Err(wrong) => return wrong.refuse(reply),
        };
        if refusal::too_long(reply, self.key, &[]) {
            return;
        }
        if before.saturating_add(adds) > BYTES_MAX {
            return refusal::value_too_large(reply);
        }
        let deadline = self.deadline().unwrap_or(Deadline::NEVER);
        let Some(permit) = self.permit(deadline, reply) else {
            return;
        };
        if self.is_live() {
            if self.change(|value| T::of_mut(value).is_some_and(|value| work(value, reply))) {
                self.changed(true);
            }
            return;
        }
        let mut value = T::default();
        if work(&mut value, reply) {
            self.create(value.into_value(), permit);
        }
    }

    /// Changes the value by `work`, which adds nothing and returns whether it removed anything. It gets
    /// `None` without a key; a value that it empties is removed.
    ///
    /// Nothing refuses this for memory or the restart guard: it may end a lock.
    pub(crate) fn shrink<T: Kind>(
        mut self,
        reply: &mut Encoder<'_>,
        work: impl FnOnce(Option<&mut T>, &mut Encoder<'_>) -> bool,
    ) {
        match self.read::<T>() {
            Ok(Some(_)) => {}
            Ok(None) => {
                work(None, reply);
                return;
            }
            Err(wrong) => return wrong.refuse(reply),
        }
        if !self.may_remove(reply) || !self.change(|value| work(T::of_mut(value), reply)) {
            return;
        }
        if self.collection().is_some_and(Value::is_empty) {
            self.remove();
        } else {
            // As with the release of a lock, a crash may undo this only for the rest of a TTL `[L3]`.
            let waits = self.deadline() == Some(Deadline::NEVER);
            self.changed(waits);
        }
    }

    fn change(&mut self, work: impl FnOnce(&mut Value) -> bool) -> bool {
        let probe = self.probe;
        self.shard.change_collection(probe, work) == Some(true)
    }
}
