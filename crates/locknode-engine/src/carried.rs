//! The session of a connection that stays open while the node goes on in another process.

use std::sync::atomic::Ordering;

use crate::client::NameKind;
use crate::key_hash::DATABASES;
use crate::session::{ReplyMode, Session};

/// A session as another process goes on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedSession {
    pub(crate) protocol: u8,
    pub(crate) db: u8,
    /// Whether the node asks for a password, and the client has sent it.
    pub(crate) has_password: bool,
    pub(crate) is_no_evict: bool,
    pub(crate) is_no_touch: bool,
    pub(crate) names: [Vec<u8>; NameKind::ALL.len()],
    /// Whom it has logged in as.
    pub(crate) user: Vec<u8>,
}

impl Session {
    /// Returns what another process needs to go on with the session; `None` if it has more than that: a transaction,
    /// subscriptions, keys that it watches, a script that runs, replies that it does not want.
    pub fn carried(&self) -> Option<CarriedSession> {
        let mut is_plain = self.transaction.is_none()
            && self.reply_mode == ReplyMode::On
            && self.is_authenticated
            && !self.logins.are_held()
            && !self.is_in_queue()
            && !self.is_waiting()
            && !self.has_script();
        #[cfg(feature = "compat")]
        {
            is_plain &= self.watching.is_none()
                && self.subscriptions.is_none()
                && self.monitor.is_none()
                && self.tracker.is_none()
                && !self.client.has_mail();
        }
        is_plain &= !self.client.is_killed();
        is_plain.then(|| CarriedSession {
            protocol: self.client.protocol.load(Ordering::Relaxed),
            db: self.db,
            has_password: self.client.registry.asks_for_password(),
            is_no_evict: self.client.is_no_evict.load(Ordering::Relaxed),
            is_no_touch: self.client.is_no_touch.load(Ordering::Relaxed),
            names: NameKind::ALL.map(|kind| self.client.name(kind)),
            user: self.client.user_name(),
        })
    }
}

impl CarriedSession {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.has_password)
            | u8::from(self.is_no_evict) << 1
            | u8::from(self.is_no_touch) << 2;
        out.extend_from_slice(&[self.protocol, self.db, flags]);
        for name in &self.names {
            // A name has at most 1024 bytes.
            let len = u16::try_from(name.len()).unwrap_or(0);
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(&name[..len.into()]);
        }
        // An argument has less than 4 GiB.
        let len = u32::try_from(self.user.len()).unwrap_or(0);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&self.user);
    }

    /// Reads them; `None` when they are not whole.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[protocol, db, flags], mut rest) = bytes.split_first_chunk()?;
        let mut names: [Vec<u8>; NameKind::ALL.len()] = Default::default();
        for name in &mut names {
            let (len, more) = rest.split_first_chunk()?;
            let (own, more) = more.split_at_checked(u16::from_le_bytes(*len).into())?;
            *name = own.to_vec();
            rest = more;
        }
        let (len, user) = rest.split_first_chunk()?;
        let is_whole = u32::from_le_bytes(*len) as usize == user.len()
            && matches!(protocol, 2 | 3)
            && usize::from(db) < DATABASES;
        is_whole.then_some(Self {
            protocol,
            db,
            has_password: flags & 1 != 0,
            is_no_evict: flags & 2 != 0,
            is_no_touch: flags & 4 != 0,
            names,
            user: user.to_vec(),
        })
    }
}
