//! Why serving failed.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Serving failed; the node itself and its other listeners continue.
#[derive(Clone, Debug)]
pub struct ServeError {
    pub(crate) source: Arc<io::Error>,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the listener cannot accept connections: {}", self.source)
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
