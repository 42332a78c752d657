//! Observers that are ready to use: one for the `tracing` facade, one for `metrics`.
//!
//! Neither keeps state or ever sees a token.

#[cfg(feature = "tracing")]
mod log;
#[cfg(feature = "metrics")]
mod meter;
#[cfg(test)]
mod tests;

#[cfg(feature = "tracing")]
pub use self::log::TracingObserver;
#[cfg(feature = "metrics")]
pub use self::meter::MetricsObserver;
