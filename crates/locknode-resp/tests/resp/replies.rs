//! Replies: written by the encoder, read by our decoder and by `redis-protocol`.

use locknode_resp::Reply::{
    Array, BigNumber, Boolean, Bulk, Double, Error, Integer, Map, Null, Push, Set, Simple, Verbatim,
};
use locknode_resp::{Encoder, Protocol, Reply, ReplyDecoder, ReplyErrorKind, ReplyLimits};
use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::resp2::types::OwnedFrame as Frame2;
use redis_protocol::resp3::types::OwnedFrame as Frame3;

fn bulk(text: &str) -> Reply {
    Bulk(text.into())
}

/// Decodes with everything at once and byte by byte, and demands the same.
fn decode(input: &[u8], limits: ReplyLimits) -> Result<Option<(Reply, usize)>, ReplyErrorKind> {
    let whole = ReplyDecoder::new(limits)
        .decode(input)
        .map_err(|error| error.kind());
    let mut decoder = ReplyDecoder::new(limits);
    let mut pieces = Ok(None);
    for end in 0..=input.len() {
        pieces = decoder.decode(&input[..end]).map_err(|error| error.kind());
        if pieces != Ok(None) {
            break;
        }
    }
    assert_eq!(
        format!("{pieces:?}"),
        format!("{whole:?}"),
        "{}",
        input.escape_ascii()
    );
    whole
}

#[test]
fn every_type_of_both_dialects_is_read() {
    let rows: Vec<(&[u8], Reply)> = vec![
        (b"+OK\r\n", Simple(b"OK".into())),
        (b"+\r\n", Simple(b"".into())),
        (b"-ERR no\r\n", Error(b"ERR no".into())),
        (b"!6\r\nERR\r\nx\r\n", Error(b"ERR\r\nx".into())),
        (b":-42\r\n", Integer(-42)),
        (b"$0\r\n\r\n", bulk("")),
        (b"$4\r\na\r\nb\r\n", bulk("a\r\nb")),
        (b"$-1\r\n", Null),
        (b"*-1\r\n", Null),
        (b"_\r\n", Null),
        (b"*0\r\n", Array(vec![])),
        (
            b"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
            Array(vec![Array(vec![Integer(1)]), bulk("x")]),
        ),
        (
            b"%2\r\n$1\r\nb\r\n:2\r\n$1\r\na\r\n*0\r\n",
            Map(vec![(bulk("b"), Integer(2)), (bulk("a"), Array(vec![]))]),
        ),
        (b"~2\r\n:2\r\n:2\r\n", Set(vec![Integer(2), Integer(2)])),
        (b">1\r\n+x\r\n", Push(vec![Simple(b"x".into())])),
        (b"#t\r\n", Boolean(true)),
        (b"#f\r\n", Boolean(false)),
        (b",1.5e3\r\n", Double(1500.0)),
        (b",-inf\r\n", Double(f64::NEG_INFINITY)),
        (
            b"=6\r\ntxt:hi\r\n",
            Verbatim {
                format: *b"txt",
                text: b"hi".into(),
            },
        ),
        (
            b"=4\r\nxyz:\r\n",
            Verbatim {
                format: *b"xyz",
                text: b"".into(),
            },
        ),
        (
            b"(123456789012345678901234567890\r\n",
            BigNumber(b"123456789012345678901234567890".into()),
        ),
        // Attributes describe what follows and are skipped, at the top and inside.
        (b"|1\r\n+ttl\r\n:3\r\n+OK\r\n", Simple(b"OK".into())),
        (
            b"*1\r\n|1\r\n+a\r\n*1\r\n:1\r\n|0\r\n:7\r\n",
            Array(vec![Integer(7)]),
        ),
    ];
    for (input, reply) in rows {
        let taken = input.len();
        assert_eq!(
            decode(input, ReplyLimits::default()),
            Ok(Some((reply.clone(), taken)))
        );
        let followed = [input, b"+next"].concat();
        assert_eq!(
            decode(&followed, ReplyLimits::default()),
            Ok(Some((reply, taken)))
        );
        for end in 0..taken {
            assert_eq!(decode(&input[..end], ReplyLimits::default()), Ok(None));
        }
    }
}

#[test]
fn one_decoder_reads_reply_after_reply() {
    let input = b"+OK\r\n*1\r\n$-1\r\n:1\r\n$3\r\nabc\r\n";
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    let (mut start, mut replies) = (0, Vec::new());
    for end in 0..=input.len() {
        while let Some((reply, taken)) = decoder.decode(&input[start..end]).unwrap() {
            start += taken;
            replies.push(reply);
        }
    }
    let array = Array(vec![Null]);
    assert_eq!(
        replies,
        [Simple(b"OK".into()), array, Integer(1), bulk("abc")]
    );
}

#[test]
fn malformed_replies_are_refused() {
    let rows: &[&[u8]] = &[
        b"\r\n",
        b"\n",
        b"x\r\n",
        b"+OK\n",
        b":1.5\r\n",
        b":\r\n",
        b":99999999999999999999\r\n",
        b"$-2\r\n",
        b"$+1\r\n",
        b"$x\r\n",
        b"$?\r\n",
        b"*?\r\n",
        b"*-2\r\n",
        b"%-1\r\n",
        b"!-1\r\n",
        b"$1\r\nabc",
        b"#x\r\n",
        b",x\r\n",
        b"_x\r\n",
        b"(\r\n",
        b"(-\r\n",
        b"(1x\r\n",
        b"=3\r\ntxt\r\n",
        b"=4\r\ntxt-\r\n",
        b";1\r\nx\r\n",
        b".\r\n",
        b"HELLO 3\r\n",
        b"*1\r\n\r\n",
    ];
    for input in rows {
        let kind = decode(input, ReplyLimits::default());
        assert_eq!(
            kind,
            Err(ReplyErrorKind::Malformed),
            "{}",
            input.escape_ascii()
        );
    }
}

#[test]
fn limits_hold_before_anything_is_stored() {
    let limits = ReplyLimits {
        depth_max: 2,
        depth_kept: 2,
        elements_max: 4,
        bytes_max: 40,
    };
    let rows: &[(&[u8], ReplyErrorKind)] = &[
        (b"*1\r\n*1\r\n*1\r\n", ReplyErrorKind::TooDeep),
        (b"*1\r\n|1\r\n*1\r\n", ReplyErrorKind::TooDeep),
        (b"*5\r\n", ReplyErrorKind::TooManyElements),
        (b"*2\r\n*3\r\n", ReplyErrorKind::TooManyElements),
        (b"%3\r\n", ReplyErrorKind::TooManyElements),
        (b"*9223372036854775807\r\n", ReplyErrorKind::TooManyElements),
        (b"%9223372036854775807\r\n", ReplyErrorKind::TooManyElements),
        (b"$34\r\n", ReplyErrorKind::TooLong),
        (b"$9223372036854775807\r\n", ReplyErrorKind::TooLong),
        (&[b'+'; 40], ReplyErrorKind::TooLong),
    ];
    for (input, kind) in rows {
        assert_eq!(
            decode(input, limits),
            Err(*kind),
            "{}",
            input.escape_ascii()
        );
    }
    let longest = [&b"$33\r\n"[..], &[b'x'; 33], b"\r\n"].concat();
    assert!(decode(&longest, limits).unwrap().is_some());
}

/// Dropped elements are checked as the others are, and what follows the reply begins where it did.
#[test]
fn elements_below_the_depth_kept_are_dropped() {
    let entry: &[u8] =
        b"*3\r\n$1\r\nx\r\n*2\r\n+flag\r\n*1\r\n:1\r\n|1\r\n+a\r\n+b\r\n%1\r\n:1\r\n-no\r\n";
    let input = [b"*2\r\n", entry, b"$-1\r\n"].concat();
    let rows = [
        (0, Array(Vec::new())),
        (1, Array(vec![Array(Vec::new()), Null])),
        (
            2,
            Array(vec![
                Array(vec![bulk("x"), Array(Vec::new()), Map(Vec::new())]),
                Null,
            ]),
        ),
    ];
    for (depth_kept, expected) in rows {
        let limits = ReplyLimits {
            depth_kept,
            ..ReplyLimits::default()
        };
        let decoded = decode(&input, limits);
        assert_eq!(decoded, Ok(Some((expected, input.len()))));
        let is_bad = decode(&[&input[..input.len() - 5], b"$x\r\n"].concat(), limits);
        assert_eq!(is_bad, Err(ReplyErrorKind::Malformed));
    }
}

#[test]
fn a_tower_of_arrays_does_not_blow_the_stack() {
    let tower = b"*1\r\n".repeat(1_000_000);
    assert_eq!(
        decode(&tower, ReplyLimits::default()),
        Err(ReplyErrorKind::TooDeep)
    );
}

fn encode(e: &mut Encoder<'_>, reply: &Reply) {
    match reply {
        Simple(text) => e.simple(str::from_utf8(text).unwrap()),
        Error(text) => e.error_bytes(text),
        Integer(n) => e.integer(*n),
        Bulk(bytes) => e.bulk(bytes),
        Null => e.null(),
        Boolean(b) => e.boolean(*b),
        Double(d) => e.double(*d),
        Verbatim { format, text } => e.verbatim(*format, text),
        BigNumber(digits) => e.raw(&[b"(", digits.as_slice(), b"\r\n"].concat()),
        Array(items) | Set(items) | Push(items) => {
            match reply {
                Array(_) => e.array(items.len()),
                Set(_) => e.set(items.len()),
                _ => e.push(items.len()),
            }
            items.iter().for_each(|item| encode(e, item));
        }
        Map(pairs) => {
            e.map(pairs.len());
            for (key, value) in pairs {
                encode(e, key);
                encode(e, value);
            }
        }
    }
}

/// What becomes of a reply in RESP2.
fn flattened(reply: &Reply) -> Reply {
    match reply {
        Boolean(b) => Integer(i64::from(*b)),
        Verbatim { text, .. } => Bulk(text.clone()),
        Array(items) | Set(items) | Push(items) => Array(items.iter().map(flattened).collect()),
        Map(pairs) => Array(
            pairs
                .iter()
                .flat_map(|(k, v)| [flattened(k), flattened(v)])
                .collect(),
        ),
        other => other.clone(),
    }
}

fn from_oracle_2(frame: Frame2) -> Reply {
    match frame {
        Frame2::SimpleString(text) => Simple(text),
        Frame2::Error(text) => Error(text.into()),
        Frame2::Integer(n) => Integer(n),
        Frame2::BulkString(bytes) => Bulk(bytes),
        Frame2::Array(items) => Array(items.into_iter().map(from_oracle_2).collect()),
        Frame2::Null => Null,
    }
}

fn from_oracle_3(frame: Frame3) -> Reply {
    let all = |items: Vec<Frame3>| items.into_iter().map(from_oracle_3).collect();
    match frame {
        Frame3::SimpleString { data, .. } => Simple(data),
        Frame3::SimpleError { data, .. } => Error(data.into()),
        Frame3::Number { data, .. } => Integer(data),
        Frame3::BlobString { data, .. } => Bulk(data),
        Frame3::Boolean { data, .. } => Boolean(data),
        Frame3::Double { data, .. } => Double(data),
        Frame3::VerbatimString { data, .. } => Verbatim {
            format: *b"txt",
            text: data,
        },
        Frame3::BigNumber { data, .. } => BigNumber(data),
        Frame3::Array { data, .. } => Array(all(data)),
        Frame3::Push { data, .. } => Push(all(data)),
        Frame3::Null => Null,
        other => panic!("not generated: {other:?}"),
    }
}

fn scalar() -> impl Strategy<Value = Reply> {
    prop_oneof![
        "[ -~]{0,12}".prop_map(|text| Simple(text.into())),
        "[ -~]{0,12}".prop_map(|text| Error(text.into())),
        any::<i64>().prop_map(Integer),
        (-120..120_i64).prop_map(Integer),
        vec(any::<u8>(), 0..120).prop_map(Bulk),
        vec(any::<u8>(), 0..12).prop_map(|text| Verbatim {
            format: *b"txt",
            text
        }),
        Just(Null),
    ]
}

fn tree(ordered_only: bool) -> impl Strategy<Value = Reply> {
    let leaf = prop_oneof![
        4 => scalar(),
        1 => any::<bool>().prop_map(Boolean),
        1 => "-?[1-9][0-9]{0,40}".prop_map(|digits| BigNumber(digits.into())),
        1 => prop::num::f64::ANY.prop_filter("nan is unequal", |d| !d.is_nan()).prop_map(Double),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let items = vec(inner.clone(), 0..6);
        let arrays = prop_oneof![items.clone().prop_map(Array), items.clone().prop_map(Push),];
        if ordered_only {
            return arrays.boxed();
        }
        let sets = items.prop_map(Set);
        let maps = vec((inner.clone(), inner), 0..4).prop_map(Map);
        prop_oneof![arrays, sets, maps].boxed()
    })
}

proptest! {
    #[test]
    fn what_is_written_in_resp3_is_read_back(reply in tree(false)) {
        let mut out = Vec::new();
        encode(&mut Encoder::new(&mut out, Protocol::Resp3), &reply);
        let taken = out.len();
        prop_assert_eq!(decode(&out, ReplyLimits::default()), Ok(Some((reply, taken))));
    }

    #[test]
    fn the_resp3_oracle_reads_the_same(reply in tree(true)) {
        let mut out = Vec::new();
        encode(&mut Encoder::new(&mut out, Protocol::Resp3), &reply);
        let (theirs, taken) = redis_protocol::resp3::decode::complete::decode(&out).unwrap().unwrap();
        prop_assert_eq!(taken, out.len());
        prop_assert_eq!(from_oracle_3(theirs), reply);
    }

    #[test]
    fn the_resp2_oracle_reads_what_is_left_of_it(reply in vec(scalar(), 0..6).prop_map(Array)) {
        let mut out = Vec::new();
        encode(&mut Encoder::new(&mut out, Protocol::Resp2), &reply);
        let expected = flattened(&reply);
        let (theirs, taken) = redis_protocol::resp2::decode::decode(&out).unwrap().unwrap();
        prop_assert_eq!(taken, out.len());
        prop_assert_eq!(from_oracle_2(theirs), expected.clone());
        prop_assert_eq!(decode(&out, ReplyLimits::default()), Ok(Some((expected, taken))));
    }

    #[test]
    fn any_bytes_harm_no_client(input in vec(prop::sample::select(b"*%~>|$!=+-:_,#(012\r\ntxa".to_vec()), 0..60)) {
        let _ = decode(&input, ReplyLimits::default());
    }
}
