//! Requests and replies are the same however their bytes are cut.
//!
//! The first bytes of the input choose the limits and the cuts, the rest is what the peer sends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use locknode_resp::{
    Decoder, Limits, ProtocolError, Reply, ReplyDecoder, ReplyErrorKind, ReplyLimits,
};

#[derive(PartialEq, Debug, Default)]
struct Requests {
    frames: Vec<(Vec<Vec<u8>>, usize)>,
    error: Option<ProtocolError>,
}

fuzz_target!(|data: &[u8]| {
    let [flags, a, b, bytes @ ..] = data else {
        return;
    };
    let mut cuts = [cut(*a, bytes), cut(*b, bytes)];
    cuts.sort_unstable();
    let bytewise: Vec<usize> = (0..bytes.len()).collect();

    let authenticated = flags & 1 == 0;
    let limits = if flags & 2 == 0 {
        Limits::default()
    } else {
        SMALL
    };
    let whole = requests(bytes, &[], &limits, authenticated);
    assert_eq!(requests(bytes, &cuts, &limits, authenticated), whole);
    assert_eq!(requests(bytes, &bytewise, &limits, authenticated), whole);

    // As text, because a reply may hold a number that is not equal to itself.
    let whole = format!("{:?}", replies(bytes, &[]));
    assert_eq!(format!("{:?}", replies(bytes, &cuts)), whole);
    assert_eq!(format!("{:?}", replies(bytes, &bytewise)), whole);
});

fn cut(part: u8, bytes: &[u8]) -> usize {
    bytes.len() * usize::from(part) / 255
}

fn requests(bytes: &[u8], cuts: &[usize], limits: &Limits, authenticated: bool) -> Requests {
    let (mut decoder, mut requests, mut start) = (Decoder::new(), Requests::default(), 0);
    for &end in cuts.iter().chain([&bytes.len()]) {
        loop {
            match decoder.decode(&bytes[start..end], limits, authenticated) {
                Ok(Some(frame)) => {
                    assert!((1..=end - start).contains(&frame.consumed()));
                    start += frame.consumed();
                    let args = frame.args().map(<[u8]>::to_vec).collect();
                    requests.frames.push((args, frame.consumed()));
                }
                Ok(None) => break,
                Err(error) => {
                    requests.error = Some(error);
                    return requests;
                }
            }
        }
    }
    requests
}

fn replies(bytes: &[u8], cuts: &[usize]) -> (Vec<(Reply, usize)>, Option<ReplyErrorKind>) {
    let mut decoder = ReplyDecoder::new(ReplyLimits {
        depth_max: 4,
        depth_kept: 4,
        elements_max: 100,
        bytes_max: 1000,
    });
    let (mut replies, mut start) = (Vec::new(), 0);
    for &end in cuts.iter().chain([&bytes.len()]) {
        loop {
            match decoder.decode(&bytes[start..end]) {
                Ok(Some((reply, taken))) => {
                    assert!((1..=end - start).contains(&taken));
                    start += taken;
                    replies.push((reply, taken));
                }
                Ok(None) => break,
                Err(error) => return (replies, Some(error.kind())),
            }
        }
    }
    (replies, None)
}

/// So small that a short input meets each limit.
const SMALL: Limits = Limits {
    bulk_len_max: 20,
    args_max: 12,
    inline_len_max: 30,
    request_len_max: 60,
};
