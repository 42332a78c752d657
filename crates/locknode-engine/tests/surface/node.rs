//! A node with several clients and a clock that stands still until it is moved.

use locknode_engine::{Engine, EngineConfig, Flow, Moment, Options, Peer, Session, Time, WallTime};

/// See the module text.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) moment: Moment,
    /// Named `a`, `b` and `c` in scripts; their ids are 1, 2 and 3.
    pub(crate) clients: Vec<Session>,
    pub(crate) flow: Flow,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self::with_options(|_| {})
    }

    /// Three clients are connected to it. It has several shards, so that the commands also prove what they lock.
    pub(crate) fn with_options(change: impl FnOnce(&mut Options)) -> Self {
        let moment = Moment {
            time: Time::from_millis(1_000),
            wall: WallTime::from_unix_nanos(NOON_MS * 1_000_000),
        };
        let mut config = EngineConfig::new(7, "run");
        config.shards = 8;
        change(&mut config.options);
        let engine = Engine::new(config, moment);
        let mut node = Self {
            engine,
            moment,
            clients: Vec::new(),
            flow: Flow::Continue,
        };
        for _ in 0..3 {
            node.connect();
        }
        node
    }

    pub(crate) fn connect(&mut self) {
        let peer = Peer {
            addr: format!("10.0.0.{}:5000", self.clients.len() + 1),
            laddr: "10.0.0.9:6379".to_owned(),
            fd: 8,
        };
        self.clients.push(
            self.engine
                .connect(peer, self.moment.time)
                .expect("room for a client"),
        );
    }

    /// Executes one command of a client and returns the reply's bytes.
    pub(crate) fn bytes(&mut self, client: usize, args: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let session = &mut self.clients[client];
        let mut batch = self.engine.batch(self.moment);
        self.flow = batch.execute(session, args, &mut out);
        assert!(batch.finish(session, 1).is_none());
        out
    }

    /// Executes a command given as words, `''` being an empty one, after the client's name if it is not `a`. In words
    /// `%20` is a space and `%0A` a line feed. Returns the reply with its line ends as spaces, and the flow behind it
    /// when that is not to go on.
    pub(crate) fn run(&mut self, request: &str) -> String {
        let (client, request) = match request.split_once("> ") {
            Some(("b", request)) => (1, request),
            Some(("c", request)) => (2, request),
            _ => (0, request),
        };
        let plain = |word: &str| {
            word.replace("''", "")
                .replace("%20", " ")
                .replace("%0A", "\n")
        };
        let words: Vec<String> = request.split(' ').map(plain).collect();
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let reply = self.bytes(client, &args).escape_ascii().to_string();
        let reply = reply
            .replace("\\r\\n", " ")
            .replace("\\'", "'")
            .replace("\\\"", "\"");
        match self.flow {
            Flow::Continue => reply.trim_end().to_owned(),
            flow => format!("{}{flow:?}", reply).trim_end().to_owned(),
        }
    }

    /// The text that a bulk reply holds.
    pub(crate) fn text(&mut self, request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let reply = String::from_utf8(self.bytes(0, &words)).expect("text");
        let (head, body) = reply.split_once("\r\n").expect("a bulk");
        let len: usize = head
            .trim_start_matches('$')
            .parse()
            .expect("the length of a bulk");
        assert_eq!(&body[len..], "\r\n");
        body[..len].to_owned()
    }

    /// Moves both clocks.
    pub(crate) fn advance_millis(&mut self, millis: u64) {
        let nanos = millis * 1_000_000;
        self.moment.time = Time::from_nanos(self.moment.time.as_nanos() + nanos);
        self.moment.wall = WallTime::from_unix_nanos(self.moment.wall.as_unix_nanos() + nanos);
    }

    /// Runs a script: lines `request => reply`, `+ milliseconds`, and `# comment`.
    #[track_caller]
    pub(crate) fn check(&mut self, script: &str) {
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            if line.starts_with('#') {
                continue;
            }
            if let Some(millis) = line.strip_prefix("+ ") {
                self.advance_millis(millis.parse().expect("milliseconds"));
                continue;
            }
            let (request, want) = line.split_once(" =>").expect("request => reply");
            assert_eq!(self.run(request), want.trim_start(), "{request:?}");
        }
    }
}

/// Runs a script on a fresh node.
#[track_caller]
pub(crate) fn check(script: &str) {
    Node::new().check(script);
}

/// Noon of 2026-01-01 in Unix milliseconds.
pub(crate) const NOON_MS: u64 = 1_767_268_800_000;
