//! Our side: the decoder and the engine, without sockets.

use std::time::{SystemTime, UNIX_EPOCH};

use locknode_engine::{Engine, EngineConfig, Moment, Peer, Time, WallTime};
use locknode_resp::{Decoder, Limits};

use crate::reply;
use crate::sequence::Request;

/// A node of one or several shards.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    started: Moment,
}

impl Node {
    pub(crate) fn new(shards: usize) -> Self {
        let started = present();
        let mut config = EngineConfig::new(7, "run");
        config.shards = shards;
        Self {
            engine: Engine::new(config, started),
            started,
        }
    }

    /// Empties the node, then sends the requests down one connection, in pieces of several lengths; one reply for
    /// each. The clock stands still meanwhile.
    pub(crate) fn run(&self, requests: &[Request]) -> Vec<Vec<u8>> {
        let mut input = b"FLUSHALL\r\n".to_vec();
        input.extend(requests.iter().flat_map(Request::encode));
        let mut replies = reply::split(&self.run_bytes(&input)).0;
        replies.remove(0);
        replies
    }

    /// Sends bytes down one connection, in pieces of several lengths; all that is received.
    pub(crate) fn run_bytes(&self, input: &[u8]) -> Vec<u8> {
        let moment = present();
        assert!(moment.time >= self.started.time, "the clock went back");
        let mut session = self
            .engine
            .connect(Peer::default(), moment.time)
            .expect("room");
        let (mut decoder, mut limits) = (Decoder::new(), Limits::default());
        // No less than the server takes.
        (limits.bulk_len_max, limits.args_max) = (512 << 20, usize::MAX);
        let (mut out, mut start, mut end, mut piece) = (Vec::new(), 0, 0, 1);
        while start < input.len() {
            end = (end + piece).min(input.len());
            piece = piece % 97 + 1;
            loop {
                match decoder.decode(&input[start..end], &limits, true) {
                    Ok(Some(frame)) => {
                        start += frame.consumed();
                        let args: Vec<&[u8]> = frame.args().collect();
                        let mut batch = self.engine.batch(moment);
                        batch.execute(&mut session, &args, &mut out);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        session.refuse(&error, &mut out);
                        return out;
                    }
                }
            }
            if end == input.len() {
                break;
            }
        }
        out
    }
}

/// The present; the wall clock serves as both clocks.
pub(crate) fn present() -> Moment {
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock after 1970");
    let nanos = u64::try_from(wall.as_nanos()).expect("a date");
    Moment {
        time: Time::from_nanos(nanos),
        wall: WallTime::from_unix_nanos(nanos),
    }
}
