//! A node with one client and a clock that stands still until it is moved.

use locknode_engine::{Engine, EngineConfig, Moment, Peer, Session, Time, WallTime};

/// See the module text.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) session: Session,
    pub(crate) moment: Moment,
}

impl Node {
    /// A node whose clock shows noon of some day, one second after its start.
    pub(crate) fn new(shards: usize) -> Self {
        let moment = Moment {
            time: Time::from_millis(1_000),
            wall: WallTime::from_unix_nanos(NOON_MS * 1_000_000),
        };
        let mut config = EngineConfig::new(7, "run");
        config.shards = shards;
        Self::with_config(config, moment)
    }

    pub(crate) fn with_config(config: EngineConfig, moment: Moment) -> Self {
        let engine = Engine::new(config, moment);
        let session = engine
            .connect(Peer::default(), moment.time)
            .expect("room for a client");
        Self {
            engine,
            session,
            moment,
        }
    }

    /// Executes one command and returns the reply's bytes.
    pub(crate) fn bytes(&mut self, args: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut batch = self.engine.batch(self.moment);
        batch.execute(&mut self.session, args, &mut out);
        assert!(batch.finish(&self.session, 1).is_none());
        out
    }

    /// Executes a command given as words and returns the reply with its line ends as spaces. `''` is an empty word.
    pub(crate) fn run(&mut self, request: &str) -> String {
        let words = request
            .split(' ')
            .map(|word| if word == "''" { "" } else { word });
        let args: Vec<&[u8]> = words.map(str::as_bytes).collect();
        let reply = self.bytes(&args).escape_ascii().to_string();
        reply
            .replace("\\r\\n", " ")
            .replace("\\'", "'")
            .replace("\\\"", "\"")
            .trim_end()
            .to_owned()
    }

    /// Moves both clocks.
    pub(crate) fn advance_nanos(&mut self, nanos: u64) {
        self.moment.time = Time::from_nanos(self.moment.time.as_nanos() + nanos);
        self.moment.wall = WallTime::from_unix_nanos(self.moment.wall.as_unix_nanos() + nanos);
    }
}

/// Noon of 2026-01-01 in Unix milliseconds.
pub(crate) const NOON_MS: u64 = 1_767_268_800_000;

/// Runs a script on a fresh node, with one shard and with eight: lines `request => reply`, `+ milliseconds`, and
/// `# comment`.
#[track_caller]
pub(crate) fn check(script: &str) {
    for shards in [1, 8] {
        let mut node = Node::new(shards);
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            if line.starts_with('#') {
                continue;
            }
            if let Some(millis) = line.strip_prefix("+ ") {
                node.advance_nanos(millis.parse::<u64>().expect("milliseconds") * 1_000_000);
                continue;
            }
            let (request, want) = line.split_once(" => ").expect("request => reply");
            assert_eq!(node.run(request), want, "{request:?} with {shards} shards");
        }
    }
}
