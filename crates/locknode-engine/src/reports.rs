//! What others are told of a script or a transaction, once it is committed.

#[cfg(feature = "compat")]
use crate::channels::TopicKind;
use crate::key_change::KeyChange;

/// One message, or the changes of one command.
#[derive(Debug)]
pub(crate) enum Report {
    #[cfg(feature = "compat")]
    Message {
        kind: TopicKind,
        channel: Box<[u8]>,
        text: Box<[u8]>,
    },
    Changes {
        command: &'static str,
        changes: Vec<KeyChange>,
    },
}

impl Report {
    /// Returns about how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let content = match self {
            #[cfg(feature = "compat")]
            Self::Message { channel, text, .. } => channel.len() + text.len(),
            Self::Changes { changes, .. } => {
                let size = |change: &KeyChange| size_of::<KeyChange>() + change.key.len();
                changes.iter().map(size).sum::<usize>()
            }
        };
        size_of::<Self>() + content
    }
}
