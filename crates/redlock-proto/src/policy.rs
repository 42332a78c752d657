//! When to retry, when to renew and when to stop: decisions without clock or randomness.

mod renew;
mod retry;

pub use renew::RenewPolicy;
pub use retry::RetryPolicy;

pub(crate) use renew::Renewal;
pub(crate) use retry::scale;
