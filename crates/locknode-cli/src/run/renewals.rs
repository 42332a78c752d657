//! Why the lock was not renewed.

use std::sync::{Arc, Mutex, PoisonError};

use redlock_client::{Event, Observer};

/// The error of the last renewal, if it failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Renewals {
    failure: Arc<Mutex<Option<String>>>,
}

impl Renewals {
    pub(super) fn why_not(&self) -> String {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match &*failure {
            Some(failure) => format!("it could not be renewed: {failure}"),
            None => {
                "it could not be renewed, and no node reported why; check them with locknode status"
                    .to_owned()
            }
        }
    }
}

impl Observer for Renewals {
    fn on_event(&self, event: &Event<'_>) {
        let failure = match event {
            Event::RenewFailed { error, .. } => Some(error.to_string()),
            Event::Renewed { .. } => None,
            _ => return,
        };
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }
}
