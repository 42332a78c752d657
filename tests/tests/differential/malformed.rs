//! Bytes that are almost requests: the same replies, and the same end of the connection.

use crate::difference::Peculiarities;
use crate::node::Node;
use crate::sequence::{Dice, Request};
use crate::server::Server;
use crate::{rounds, seed};

#[test]
fn malformed_requests_are_answered_as_by_a_real_server() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let node = Node::new(1);
    let peculiarities = Peculiarities::of(&mut server);
    let count = rounds(INPUTS);
    for number in 0..count {
        let seed = seed().wrapping_add(number);
        let input = input(&mut Dice::new(seed));
        node.run(&[]);
        let (theirs, ours) = (server.run_bytes(&input), node.run_bytes(&input));
        assert!(
            peculiarities.allow_all(&theirs, &ours),
            "LOCKNODE_TEST_SEED={seed}, after \"{}\"\n  real: {}\n  ours: {}",
            input.escape_ascii(),
            theirs.escape_ascii(),
            ours.escape_ascii()
        );
    }
    println!("{count} inputs compared with {}", peculiarities.version);
}

/// Some requests with some mistakes.
fn input(dice: &mut Dice) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..=dice.below(5) {
        let line = dice.pick(&LINES);
        if dice.one_in(3) {
            input.extend(format!("{line}\r\n").into_bytes());
        } else {
            let words = line.split(' ').map(|word| word.as_bytes().to_vec());
            input.extend(Request::array(words).encode());
        }
    }
    for _ in 0..dice.below(4) {
        if input.is_empty() {
            break;
        }
        let at = dice.below(input.len());
        match dice.below(6) {
            0 => drop(input.remove(at)),
            1 => input[at] = BYTES[dice.below(BYTES.len())],
            2 => input.insert(at, BYTES[dice.below(BYTES.len())]),
            3 => input.truncate(at),
            4 => {
                let piece = dice.pick(&PIECES);
                input.splice(at..at, piece.bytes());
            }
            _ => number(dice, &mut input, at),
        }
    }
    input
}

/// Replaces the first count or length from there on.
fn number(dice: &mut Dice, input: &mut Vec<u8>, at: usize) {
    let is_mark = |byte: &u8| matches!(byte, b'*' | b'$');
    let Some(mark) = input.iter().skip(at).position(is_mark) else {
        return;
    };
    let begin = at + mark + 1;
    let len = input.iter().skip(begin).position(|byte| *byte == b'\r');
    let end = begin + len.unwrap_or(0);
    input.splice(begin..end, dice.pick(&NUMBERS).bytes());
}

const LINES: [&str; 12] = [
    "PING",
    "PING",
    "ECHO text",
    "SET a b",
    "SET a b NX",
    "GET a",
    "GET a",
    "DEL a b",
    "INCR n",
    "EXISTS a",
    "CLIENT REPLY SKIP",
    "CLIENT REPLY OFF",
];
const BYTES: &[u8] = b"*$\r\n\r\n09-+ \"'\\za\t";
const PIECES: [&str; 13] = [
    "\r\n",
    "\n",
    "\"",
    "'",
    "\"\\x41\"",
    "'a\\'b'",
    "\"\\n\"b",
    "*0\r\n",
    "*-1\r\n",
    "*1\r\n$4\r\nPING\r\n",
    "*2\r\n$4\r\nPING\r\n",
    "$4\r\nPING\r\n",
    "PING\r\n",
];
const NUMBERS: [&str; 15] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "-1",
    "-2",
    "+1",
    "01",
    " 1",
    "",
    "1x",
    "1048576",
    "2147483648",
    "99999999999999999999",
];

/// They are cheap, and their space is large.
const INPUTS: u64 = 1_500;
