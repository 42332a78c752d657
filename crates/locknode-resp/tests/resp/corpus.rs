//! A driver that feeds a decoder in pieces, and inputs worth feeding.

use locknode_resp::{Decoder, Limits};

/// Everything that came out of one connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    /// The arguments of each frame and how many bytes it took.
    pub(crate) frames: Vec<(Vec<Vec<u8>>, usize)>,
    /// What is sent before the connection is closed; `None` if it stays open.
    pub(crate) last_words: Option<Vec<u8>>,
}

impl Outcome {
    /// The arguments of the frames that are not skipped.
    pub(crate) fn commands(&self) -> Vec<Vec<Vec<u8>>> {
        let commands = self.frames.iter().map(|(args, _)| args.clone());
        commands.filter(|args| !args.is_empty()).collect()
    }
}

/// Feeds `input` to a fresh decoder, cut at `cuts` (ascending offsets).
pub(crate) fn feed(input: &[u8], cuts: &[usize], limits: &Limits, authenticated: bool) -> Outcome {
    let mut decoder = Decoder::new();
    let mut outcome = Outcome::default();
    let mut start = 0;
    for &end in cuts.iter().chain([&input.len()]) {
        loop {
            let needed = decoder.needed();
            match decoder.decode(&input[start..end], limits, authenticated) {
                Ok(Some(frame)) => {
                    assert!(needed <= frame.consumed(), "the hint asked for too much");
                    assert!(frame.consumed() > 0 && frame.consumed() <= end - start);
                    assert_eq!(frame.is_empty(), frame.args().next().is_none());
                    assert_eq!(frame.len(), frame.args().len());
                    assert_eq!(frame.arg(frame.len()), None);
                    start += frame.consumed();
                    let args = frame.args().map(<[u8]>::to_vec).collect();
                    outcome.frames.push((args, frame.consumed()));
                }
                Ok(None) => break,
                Err(error) => {
                    let mut reply = Vec::new();
                    error.append_reply(&mut reply);
                    assert_eq!(reply.is_empty(), error.is_silent());
                    outcome.last_words = Some(reply);
                    return outcome;
                }
            }
        }
    }
    outcome
}

/// Feeds `input` whole, byte by byte and cut in two at every offset (a few where it is long), and demands the
/// same outcome each time.
pub(crate) fn feed_every_way(input: &[u8], limits: &Limits, authenticated: bool) -> Outcome {
    let whole = feed(input, &[], limits, authenticated);
    let bytewise: Vec<usize> = (0..input.len()).collect();
    assert_eq!(
        feed(input, &bytewise, limits, authenticated),
        whole,
        "{}",
        input.escape_ascii()
    );
    for cut in (0..input.len()).step_by(1 + input.len() / 256) {
        let halves = feed(input, &[cut], limits, authenticated);
        assert_eq!(halves, whole, "{} cut at {cut}", input.escape_ascii());
    }
    whole
}

/// Valid and skipped input: bytes, and the commands in it.
#[expect(
    clippy::type_complexity,
    reason = "rows of literals read best as what they are"
)]
pub(crate) const COMMANDS: &[(&[u8], &[&[&[u8]]])] = &[
    (b"", &[]),
    (b"*1\r\n$4\r\nPING\r\n", &[&[b"PING"]]),
    (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", &[&[b"ECHO", b""]]),
    (b"*1\r\n$0\r\n\r\n", &[&[b""]]),
    (
        b"*6\r\n$3\r\nSET\r\n$4\r\njobs\r\n$8\r\n\r\n\0*1$\xff!\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n",
        &[&[b"SET", b"jobs", b"\r\n\0*1$\xff!", b"NX", b"PX", b"30000"]],
    ),
    (
        b"*11\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n$12\r\nabcdefghijkl\r\n",
        &[&[b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i", b"j", b"abcdefghijkl"]],
    ),
    (
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n",
        &[&[b"GET", b"k"], &[b"PING"], &[b"QUIT"]],
    ),
    // Skipped in silence.
    (b"*0\r\n*-1\r\n*-10\r\n\r\n\n   \r\nPING\r\n", &[&[b"PING"]]),
    (b"*-9223372036854775808\r\nPING\r\n", &[&[b"PING"]]),
    // Redis does not look at the byte after a carriage return nor at the end of an argument.
    (b"*1\rX$4\rYPINGxxPING\n", &[&[b"PING"], &[b"PING"]]),
    // Incomplete for ever, as long as nothing follows.
    (b"*1\n$4\nPING\n", &[]),
    (b"*2147483\r", &[]),
    (b"*1\r\n!", &[]),
    (b"*1\r\n!\r", &[]),
    (b"*1\r\n$4\r\nPING\r", &[]),
    (b"PING", &[]),
    (b"PING\r", &[]),
    (b"PI\0NG\r\nPING\r\n", &[]),
    (b"\0\nPING\r\n", &[]),
    // Inline.
    (b"PING\n", &[&[b"PING"]]),
    (b"PING\r\r\n", &[&[b"PING"]]),
    (b"\r \t\x0b\x0cPING \r\n", &[&[b"PING"]]),
    (b"PING\x0b\r\n", &[&[b"PING\x0b"]]),
    (b"ECHO a\x0bb\tc\rd\r\n", &[&[b"ECHO", b"a\x0bb", b"c", b"d"]]),
    (b"set k t NX px 30000\r\n", &[&[b"set", b"k", b"t", b"NX", b"px", b"30000"]]),
    (b"$4\r\nPING\r\n", &[&[b"$4"], &[b"PING"]]),
    (b"\xff\xfe\r\n", &[&[b"\xff\xfe"]]),
    (b"ECHO \"a b\" c\r\n", &[&[b"ECHO", b"a b", b"c"]]),
    (b"ECHO 'a\\'b' 'a\\nb' 'a\"b'\r\n", &[&[b"ECHO", b"a'b", b"a\\nb", b"a\"b"]]),
    (
        b"ECHO \"\\x41\\x0a\\xZZ\\n\\r\\t\\b\\a\\q\\\"\\\\\"\r\n",
        &[&[b"ECHO", b"A\nxZZ\n\r\t\x08\x07q\"\\"]],
    ),
    (b"ECHO \"\\x4\" \"\\X41\" \"\\x4a\\xAb\"\r\n", &[&[b"ECHO", b"x4", b"X41", b"J\xab"]]),
    (b"ECHO a\"b c\" a'b c' \\x41\r\n", &[&[b"ECHO", b"ab c", b"ab c", b"\\x41"]]),
    (b"ECHO \"a\tb\" \"a\"\x0b\r\n", &[&[b"ECHO", b"a\tb", b"a"]]),
    (b"ECHO \"\" ''\r\n", &[&[b"ECHO", b"", b""]]),
    (b"\"\"\r\n", &[&[b""]]),
    // Not what browsers send.
    (b"POSTS\r\nHOST\r\npos\r\n\"\"\r\n", &[&[b"POSTS"], &[b"HOST"], &[b"pos"], &[b""]]),
];
