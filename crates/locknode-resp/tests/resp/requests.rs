//! Valid requests, whole and in pieces.

use locknode_resp::{Decoder, Limits, encode_command};
use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::resp2::decode::decode as oracle;
use redis_protocol::resp2::types::OwnedFrame;

use crate::corpus::{COMMANDS, feed, feed_every_way};

#[test]
fn commands_are_the_same_however_they_arrive() {
    for (input, commands) in COMMANDS {
        let outcome = feed_every_way(input, &Limits::default(), true);
        assert_eq!(outcome.commands(), *commands, "{}", input.escape_ascii());
        assert_eq!(outcome.last_words, None, "{}", input.escape_ascii());
    }
}

#[test]
fn the_whole_corpus_can_be_pipelined() {
    let complete = COMMANDS.iter().filter(|(input, commands)| {
        let taken: usize = feed(input, &[], &Limits::default(), true)
            .frames
            .iter()
            .map(|f| f.1)
            .sum();
        !commands.is_empty() && taken == input.len()
    });
    let (inputs, commands): (Vec<_>, Vec<_>) = complete.copied().unzip();
    let outcome = feed_every_way(&inputs.concat(), &Limits::default(), true);
    assert_eq!(outcome.commands(), commands.concat());
}

#[test]
fn skipped_bytes_are_frames_without_arguments() {
    let outcome = feed_every_way(b"\r\n*0\r\n*-1\r\n \nPING\r\n", &Limits::default(), true);
    let taken: Vec<_> = outcome
        .frames
        .iter()
        .map(|(args, taken)| (args.len(), *taken))
        .collect();
    assert_eq!(taken, [(0, 2), (0, 4), (0, 5), (0, 2), (1, 6)]);
}

#[test]
fn a_megabyte_that_arrives_byte_by_byte_is_not_searched_again() {
    // With a search from the start for each byte this would take hours.
    let mut input = Vec::new();
    encode_command(&mut input, &[b"SET", b"k", &vec![b'\n'; 1 << 20]]);
    let bytewise: Vec<usize> = (0..input.len()).collect();
    assert_eq!(
        feed(&input, &bytewise, &Limits::default(), true)
            .frames
            .len(),
        1
    );

    let many = vec![&b"x"[..]; 100_000];
    input.clear();
    encode_command(&mut input, &many);
    let bytewise: Vec<usize> = (0..input.len()).collect();
    assert_eq!(
        feed(&input, &bytewise, &Limits::default(), true).commands(),
        [many]
    );
}

#[test]
fn what_the_next_bytes_must_bring_is_known() {
    let limits = Limits::default();
    let mut decoder = Decoder::new();
    assert_eq!(decoder.needed(), 0);
    let mut input = b"*1\r\n$5000\r\n".to_vec();
    assert!(decoder.decode(&input, &limits, true).unwrap().is_none());
    assert_eq!(decoder.needed(), 11 + 5000 + 2);
    input.resize(decoder.needed(), b'x');
    assert_eq!(
        decoder
            .decode(&input, &limits, true)
            .unwrap()
            .map(|frame| frame.len()),
        Some(1)
    );
    assert_eq!(decoder.needed(), 0);
}

fn arg() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(any::<u8>(), 0..40),
        1 => vec(any::<u8>(), 90..110),
        1 => vec(any::<u8>(), 990..1100),
    ]
}

/// Bytes that look like the protocol often enough to get deep into it.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"*2\r\n".to_vec()),
        Just(b"$3\r\nGET\r\n".to_vec()),
        Just(b"PING\r\n".to_vec()),
        (-2..120_i32).prop_map(|n| format!("*{n}\r\n").into_bytes()),
        (-1..1200_i32).prop_map(|n| format!("${n}\r\n").into_bytes()),
        vec(
            prop::sample::select(b"*$\r\n0123-\"'\\x \0ab:".to_vec()),
            0..8
        ),
        vec(any::<u8>(), 0..8),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn cuts(input: &[u8], parts: &[prop::sample::Index]) -> Vec<usize> {
    let mut cuts: Vec<usize> = parts
        .iter()
        .map(|part| part.index(input.len() + 1))
        .collect();
    cuts.sort_unstable();
    cuts
}

proptest! {
    #[test]
    fn encoded_commands_are_decoded(
        commands in vec(vec(arg(), 1..14), 0..6),
        parts in vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut input = Vec::new();
        for command in &commands {
            let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            encode_command(&mut input, &args);
        }
        let http = |name: &[u8]| matches!(name.to_ascii_lowercase().as_slice(), b"post" | b"host:");
        prop_assume!(!commands.iter().any(|command| http(&command[0])));
        let outcome = feed(&input, &cuts(&input, &parts), &Limits::default(), true);
        prop_assert_eq!(outcome.commands(), commands);
        prop_assert_eq!(outcome.frames.iter().map(|frame| frame.1).sum::<usize>(), input.len());
    }

    #[test]
    fn the_oracle_reads_the_same_arguments(command in vec(arg(), 1..14)) {
        let mut input = Vec::new();
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        encode_command(&mut input, &args);
        let (frame, taken) = oracle(&input).unwrap().unwrap();
        prop_assert_eq!(taken, input.len());
        let theirs = OwnedFrame::Array(command.into_iter().map(OwnedFrame::BulkString).collect());
        prop_assert_eq!(frame, theirs);
    }

    #[test]
    fn the_short_way_and_the_general_way_read_the_same(
        command in vec(arg(), 1..11),
        rest in noise(),
        cut in any::<prop::sample::Index>(),
    ) {
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let mut input = Vec::new();
        encode_command(&mut input, &words);
        input.extend_from_slice(&rest);
        input.truncate(cut.index(input.len() + 1));
        let limits = Limits::default();
        let mut args: [&[u8]; 9] = [&[]; 9];
        if let Some((short, consumed)) = Decoder::new().decode_short(&input, &mut args) {
            let mut decoder = Decoder::new();
            let frame = decoder.decode(&input, &limits, false).unwrap().unwrap();
            prop_assert_eq!(frame.consumed(), consumed);
            prop_assert_eq!(frame.args().collect::<Vec<_>>(), short);
        }
    }

    #[test]
    fn noise_is_the_same_however_it_arrives(
        input in noise(),
        parts in vec(any::<prop::sample::Index>(), 0..6),
        authenticated: bool,
    ) {
        let limits = Limits { bulk_len_max: 1000, args_max: 100, inline_len_max: 64, request_len_max: 1500 };
        let whole = feed(&input, &[], &limits, authenticated);
        let pieces = feed(&input, &cuts(&input, &parts), &limits, authenticated);
        prop_assert_eq!(&pieces, &whole);
        let bytewise: Vec<usize> = (0..input.len()).collect();
        prop_assert_eq!(feed(&input, &bytewise, &limits, authenticated), whole);
    }

    #[test]
    fn any_bytes_harm_nothing(input in vec(any::<u8>(), 0..300)) {
        feed(&input, &[], &Limits::default(), true);
    }
}
