//! What clients that cache keys are sent when they may no longer use them.

use std::cell::OnceCell;
use std::sync::Arc;

use locknode_resp::{Encoder, Protocol};

use crate::client::Client;

/// The invalidation of keys, or of all, encoded once for all clients.
#[derive(Debug)]
pub(crate) struct Invalidation<'a> {
    /// `None` for all.
    keys: Option<&'a [&'a [u8]]>,
    resp2: OnceCell<Arc<[u8]>>,
    resp3: OnceCell<Arc<[u8]>>,
}

impl<'a> Invalidation<'a> {
    pub(crate) const fn new(keys: Option<&'a [&'a [u8]]>) -> Self {
        Self {
            keys,
            resp2: OnceCell::new(),
            resp3: OnceCell::new(),
        }
    }

    /// Sends it, and returns whether the client's task must be woken. RESP2 has no pushes: there it
    /// is a message, and reaches only a subscriber that others redirect to.
    pub(crate) fn send(&self, target: &Client, is_redirected: bool) -> bool {
        let protocol = target.protocol();
        let has_pushes = protocol == Protocol::Resp3;
        let is_sent = has_pushes || is_redirected && target.is_subscriber();
        is_sent && target.add_mail(self.bytes(protocol))
    }

    fn bytes(&self, protocol: Protocol) -> Arc<[u8]> {
        let encoded = match protocol {
            Protocol::Resp2 => &self.resp2,
            Protocol::Resp3 => &self.resp3,
        };
        let bytes = encoded.get_or_init(|| {
            let mut bytes = Vec::new();
            self.write(&mut Encoder::new(&mut bytes, protocol));
            bytes.into()
        });
        Arc::clone(bytes)
    }

    fn write(&self, push: &mut Encoder<'_>) {
        match push.protocol() {
            Protocol::Resp2 => {
                push.array(3);
                push.bulk(b"message");
                push.bulk(b"__redis__:invalidate");
            }
            Protocol::Resp3 => {
                push.push(2);
                push.bulk(b"invalidate");
            }
        }
        match self.keys {
            None => push.null(),
            Some(keys) => {
                push.array(keys.len());
                keys.iter().for_each(|key| push.bulk(key));
            }
        }
    }
}

/// Sends a client that its invalidations were redirected to one that is gone.
pub(crate) fn send_broken(client: &Client, redirect: u64) {
    if client.protocol() == Protocol::Resp3 {
        client.send(|push| {
            push.push(2);
            push.bulk(b"tracking-redir-broken");
            push.integer(i64::try_from(redirect).unwrap_or(i64::MAX));
        });
    }
}
