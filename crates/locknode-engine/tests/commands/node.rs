//! A node with several clients and a clock that stands still until it is moved.

use locknode_engine::{Engine, EngineConfig, Flow, Moment, Options, Peer, Session, Time, WallTime};

/// See the module text.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) moment: Moment,
    shards: usize,
    /// Named `a`, `b` and `c` in scripts; their ids are 1, 2 and 3.
    pub(crate) clients: Vec<Session>,
    pub(crate) flow: Flow,
    has_clock: bool,
    /// Whether the clock moves to the answer of a wrong password.
    pub(crate) skips_login_delay: bool,
}

impl Node {
    /// It has several shards, so that the commands also prove what they lock.
    pub(crate) fn new() -> Self {
        Self::with_shards(8)
    }

    pub(crate) fn with_shards(shards: usize) -> Self {
        Self::with_config(|config| config.shards = shards)
    }

    pub(crate) fn with_options(change: impl FnOnce(&mut Options)) -> Self {
        Self::with_config(|config| {
            config.shards = 8;
            change(&mut config.options);
        })
    }

    /// Three clients are connected to it. Its clock shows noon of some day, one second after its start.
    pub(crate) fn with_config(change: impl FnOnce(&mut EngineConfig)) -> Self {
        let moment = Moment {
            time: Time::from_millis(1_000),
            wall: WallTime::from_unix_nanos(NOON_MS * 1_000_000),
        };
        let mut config = EngineConfig::new(7, "run");
        change(&mut config);
        let mut node = Self {
            shards: config.shards,
            has_clock: config.stopwatch.is_some(),
            skips_login_delay: true,
            engine: Engine::new(config, moment),
            moment,
            clients: Vec::new(),
            flow: Flow::Continue,
        };
        (0..3).for_each(|_| node.connect());
        node
    }

    pub(crate) fn connect(&mut self) {
        let peer = Peer {
            addr: format!("10.0.0.{}:5000", self.clients.len() + 1),
            laddr: "10.0.0.9:6379".to_owned(),
            fd: 8,
        };
        let session = self.engine.connect(peer, self.moment.time);
        self.clients.push(session.expect("room for a client"));
    }

    /// Executes one command of client `a` and returns the reply's bytes.
    pub(crate) fn bytes(&mut self, args: &[&[u8]]) -> Vec<u8> {
        self.bytes_for(0, args)
    }

    /// Executes one command of a client and returns the reply's bytes.
    pub(crate) fn bytes_for(&mut self, client: usize, args: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let session = &mut self.clients[client];
        loop {
            let mut batch = self.engine.batch(self.moment);
            self.flow = batch.execute(session, args, &mut out);
            assert!(batch.finish(session, 1).is_none());
            let is_login =
                [&b"AUTH"[..], b"HELLO"].contains(&args[0].to_ascii_uppercase().as_slice());
            if self.flow == Flow::Paused && is_login && self.skips_login_delay {
                let until = self.engine.wait_end(session, self.moment.time);
                self.moment.time = until.expect("the end of the delay");
                continue;
            }
            // Nobody else has to be served between two turns.
            if !session.is_in_queue() {
                return out;
            }
        }
    }

    /// Executes a command given as words, after the client's name if it is not `a`. A word with spaces is in double
    /// quotes, `''` is an empty one, `%20` a space, `%0A` a line feed. Returns the reply with its line ends as spaces,
    /// and the flow after it unless that is to continue.
    /// `b<` stands for what client `b` was sent that it did not ask for.
    pub(crate) fn run(&mut self, request: &str) -> String {
        if let Some(client) = ["a<", "b<", "c<"].iter().position(|it| *it == request) {
            return self.mail(client);
        }
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
        let words: Vec<String> = split(request).map(plain).collect();
        let args: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let reply = plain_text(&self.bytes_for(client, &args));
        match self.flow {
            Flow::Continue => reply.trim_end().to_owned(),
            // Because the command took long.
            Flow::Yield if self.has_clock => reply.trim_end().to_owned(),
            flow => format!("{}{flow:?}", reply).trim_end().to_owned(),
        }
    }

    /// What a client was sent that it did not ask for, as [`Node::run`] writes replies.
    pub(crate) fn mail(&self, client: usize) -> String {
        let mut mail = Vec::new();
        self.clients[client]
            .client()
            .take_mail(&mut mail, usize::MAX);
        plain_text(&mail).trim_end().to_owned()
    }

    /// The text that a bulk reply holds.
    pub(crate) fn text(&mut self, request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let reply = String::from_utf8(self.bytes(&words)).expect("text");
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
        self.advance_nanos(millis * 1_000_000);
    }

    /// Moves both clocks.
    pub(crate) fn advance_nanos(&mut self, nanos: u64) {
        self.moment.time = Time::from_nanos(self.moment.time.as_nanos() + nanos);
        self.moment.wall = WallTime::from_unix_nanos(self.moment.wall.as_unix_nanos() + nanos);
    }

    /// Runs a script: lines `request => reply`, `+ milliseconds`, and `# comment`.
    #[track_caller]
    pub(crate) fn check(&mut self, script: &str) {
        for line in script.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(millis) = line.strip_prefix("+ ") {
                self.advance_millis(millis.parse().expect("milliseconds"));
                continue;
            }
            let (request, want) = line.split_once(" =>").expect("request => reply");
            let (reply, shards) = (self.run(request), self.shards);
            assert_eq!(reply, want.trim_start(), "{request:?} with {shards} shards");
        }
    }
}

/// Reply bytes with their line ends as spaces.
fn plain_text(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    text.replace("\\r\\n", " ")
        .replace("\\'", "'")
        .replace("\\\"", "\"")
}

/// Splits a request at its spaces, but for those between double quotes.
fn split(request: &str) -> impl Iterator<Item = &str> {
    let parts = request.split('"').enumerate();
    parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_ascii_whitespace().collect(),
        _ => vec![part],
    })
}

/// Reads a table of lines `left => right`, and `# comment`.
pub(crate) fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.lines().map(str::trim);
    let rows = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|line| {
        let (left, right) = line.split_once(" =>").expect("left => right");
        (left, right.trim_start())
    })
}

/// Runs a script on a fresh node, with one shard and with eight.
#[track_caller]
pub(crate) fn check(script: &str) {
    for shards in [1, 8] {
        Node::with_shards(shards).check(script);
    }
}

/// Noon of 2026-01-01 in Unix milliseconds.
pub(crate) const NOON_MS: u64 = 1_767_268_800_000;
