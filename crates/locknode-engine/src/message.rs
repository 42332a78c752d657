//! What subscribers are sent, encoded once for all of them.

use std::cell::OnceCell;
use std::sync::Arc;

use locknode_resp::{Encoder, Protocol};

/// One message as it is published to the subscribers of one channel or pattern.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// `message`, the channel and the text; for a pattern it is the second element.
    pub(crate) elements: &'a [&'a [u8]],
    resp2: OnceCell<Arc<[u8]>>,
    resp3: OnceCell<Arc<[u8]>>,
}

impl<'a> Message<'a> {
    pub(crate) const fn new(elements: &'a [&'a [u8]]) -> Self {
        Self {
            elements,
            resp2: OnceCell::new(),
            resp3: OnceCell::new(),
        }
    }

    /// Returns its bytes in a protocol, which all subscribers share.
    pub(crate) fn bytes(&self, protocol: Protocol) -> Arc<[u8]> {
        let encoded = match protocol {
            Protocol::Resp2 => &self.resp2,
            Protocol::Resp3 => &self.resp3,
        };
        let bytes = encoded.get_or_init(|| {
            let mut bytes = Vec::new();
            let mut push = Encoder::new(&mut bytes, protocol);
            push.push(self.elements.len());
            self.elements.iter().for_each(|element| push.bulk(element));
            bytes.into()
        });
        Arc::clone(bytes)
    }
}
