//! What a node gives the process that goes on in its place, and takes from the one before it, besides locks: sessions,
//! scripts that clients have sent, and how far the fence counters have come.

#![cfg(feature = "hand-over")]

use std::sync::atomic::Ordering;

use locknode_resp::Protocol;

use crate::carried::CarriedSession;
use crate::client::{NameKind, Peer};
use crate::engine::Engine;
use crate::session::Session;
use crate::time::Time;
use crate::users::DEFAULT_USER;

impl Engine {
    /// Registers a connection with the session that it had in another process; `None` when `maxclients` are connected,
    /// when this node has no such user or has turned it off, or when it asks for a password and the other did not.
    pub fn resume(&self, peer: Peer, carried: &CarriedSession, now: Time) -> Option<Session> {
        let mut session = self.connect(peer, now)?;
        let account = self.services.users.active(&carried.user)?;
        let has_logged_in = carried.has_password || carried.user != DEFAULT_USER;
        if !session.is_authenticated && !has_logged_in {
            return None;
        }
        session.log_in(account);
        let client = &session.client;
        for (kind, name) in NameKind::ALL.into_iter().zip(&carried.names) {
            client.rename(kind, name);
        }
        client
            .is_no_evict
            .store(carried.is_no_evict, Ordering::Relaxed);
        client
            .is_no_touch
            .store(carried.is_no_touch, Ordering::Relaxed);
        client.protocol.store(carried.protocol, Ordering::Relaxed);
        client.db.store(carried.db, Ordering::Relaxed);
        session.is_authenticated = true;
        session.db = carried.db;
        session.protocol = match carried.protocol {
            3 => Protocol::Resp3,
            _ => Protocol::Resp2,
        };
        Some(session)
    }

    /// Returns the highest fence counter of any key.
    pub fn fence_max(&self) -> u64 {
        let shards = 0..self.keyspace.shard_count();
        let max =
            shards.filter_map(|shard| self.keyspace.with_shard(shard, |shard| shard.fence_max()));
        max.max().unwrap_or(0)
    }

    /// Returns what INFO calls this run.
    pub fn run_id(&self) -> &str {
        &self.services.run_id
    }

    /// Returns the texts of the scripts that clients have sent.
    pub fn script_texts(&self) -> Vec<Vec<u8>> {
        self.services.scripts.texts()
    }

    /// Takes a script as SCRIPT LOAD does. One that cannot run here is left out.
    pub fn load_script(&self, text: &[u8]) {
        let _ = self.services.scripts.load(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineConfig;
    use crate::time::Moment;

    fn engine(password: &str) -> Engine {
        let mut config = EngineConfig::new(1, "");
        config.options.requirepass = password.to_owned();
        Engine::new(config, Moment::default())
    }

    fn run(engine: &Engine, session: &mut Session, line: &str) -> String {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut out = Vec::new();
        let mut batch = engine.batch(Moment::default());
        batch.execute(session, &args, &mut out);
        let _ = batch.finish(session, 1);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_session_goes_on_as_it_was() {
        let (old, new) = (engine("secret"), engine("secret"));
        let mut session = old.connect(Peer::default(), Time::ZERO).expect("room");
        assert_eq!(session.carried(), None, "it has not logged in");
        for line in [
            "HELLO 3 AUTH default secret SETNAME worker",
            "SELECT 5",
            "CLIENT SETINFO LIB-NAME driver",
            "CLIENT NO-TOUCH on",
        ] {
            let reply = run(&old, &mut session, line);
            assert!(!reply.starts_with('-'), "{reply}");
        }
        let carried = session.carried().expect("a plain one");
        let mut bytes = Vec::new();
        carried.encode(&mut bytes);
        assert_eq!(CarriedSession::decode(&bytes), Some(carried.clone()));
        for len in 0..bytes.len() {
            assert_eq!(CarriedSession::decode(&bytes[..len]), None);
        }
        let mut resumed = new
            .resume(Peer::default(), &carried, Time::ZERO)
            .expect("room");
        assert_eq!(resumed.carried(), Some(carried));
        let list = run(&new, &mut resumed, "CLIENT LIST");
        for part in [
            "name=worker",
            "lib-name=driver",
            "db=5",
            "resp=3",
            "flags=T",
        ] {
            assert!(list.contains(part), "{part}: {list}");
        }
        assert_eq!(run(&new, &mut resumed, "GET k"), "_\r\n");
    }

    #[test]
    fn a_password_that_is_new_is_asked_for() {
        let (open, closed) = (engine(""), engine("secret"));
        let session = open.connect(Peer::default(), Time::ZERO).expect("room");
        let carried = session.carried().expect("a plain one");
        assert!(
            closed
                .resume(Peer::default(), &carried, Time::ZERO)
                .is_none()
        );
        assert!(open.resume(Peer::default(), &carried, Time::ZERO).is_some());
    }

    #[cfg(feature = "acl")]
    #[test]
    fn a_user_goes_on_with_what_it_may_do_here() {
        let (old, new) = (engine(""), engine("secret"));
        let mut session = old.connect(Peer::default(), Time::ZERO).expect("room");
        run(&old, &mut session, "ACL SETUSER app on nopass ~* +get");
        run(&old, &mut session, "AUTH app x");
        let carried = session.carried().expect("a plain one");
        let resume = || new.resume(Peer::default(), &carried, Time::ZERO);
        assert!(resume().is_none(), "nobody has that name");
        let mut admin = new.connect(Peer::default(), Time::ZERO).expect("room");
        run(&new, &mut admin, "AUTH secret");
        run(&new, &mut admin, "ACL SETUSER app off nopass ~* +set");
        assert!(resume().is_none(), "it is off");
        run(&new, &mut admin, "ACL SETUSER app on");
        let mut resumed = resume().expect("room");
        let user = resumed.carried().map(|carried| carried.user);
        assert_eq!(user.as_deref(), Some(&b"app"[..]));
        let refusal = run(&new, &mut resumed, "GET k");
        assert!(refusal.starts_with("-NOPERM"), "{refusal}");
        assert_eq!(run(&new, &mut resumed, "SET k v"), "+OK\r\n");
        // What holds for users holds for `default`.
        let mut login = engine("secret")
            .connect(Peer::default(), Time::ZERO)
            .expect("room");
        run(&new, &mut login, "AUTH secret");
        let carried = login.carried().expect("a plain one");
        assert!(new.resume(Peer::default(), &carried, Time::ZERO).is_some());
        run(&new, &mut admin, "ACL SETUSER default off");
        assert!(new.resume(Peer::default(), &carried, Time::ZERO).is_none());
    }

    #[cfg(feature = "compat")]
    #[test]
    fn a_session_with_more_is_not_carried() {
        for line in [
            "MULTI",
            "WATCH k",
            "SUBSCRIBE c",
            "CLIENT TRACKING on BCAST",
            "CLIENT REPLY skip",
            "BLPOP l 0",
            "MONITOR",
        ] {
            let engine = engine("");
            let mut session = engine.connect(Peer::default(), Time::ZERO).expect("room");
            run(&engine, &mut session, "HELLO 3");
            assert!(session.carried().is_some());
            run(&engine, &mut session, line);
            assert_eq!(session.carried(), None, "{line}");
        }
    }

    #[test]
    fn counters_and_scripts_are_told() {
        let engine = engine("");
        let mut session = engine.connect(Peer::default(), Time::ZERO).expect("room");
        assert_eq!(engine.fence_max(), 0);
        for _ in 0..3 {
            run(&engine, &mut session, "SET k v");
        }
        run(&engine, &mut session, "SET other v");
        assert!(engine.fence_max() >= 1);
        engine.load_script(b"return redis.call('get',KEYS[1])");
        let texts = engine.script_texts();
        assert_eq!(texts, [b"return redis.call('get',KEYS[1])"]);
    }
}
