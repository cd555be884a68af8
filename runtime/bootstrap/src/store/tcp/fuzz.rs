//! Fuzz target over the messages of the TCP store: what is parsed means what was sent.

use super::frame::{FrameBuffer, head};
use super::message::{Answer, Greeting, Hello, MAX_GREETING_BYTES, Reply, Request};

/// Frames of `stream`, fed in pieces of at most `piece`, none longer than `most`.
fn cut(mut stream: &[u8], piece: usize, most: usize) -> Vec<Vec<u8>> {
    let (mut buffer, mut frames) = (FrameBuffer::default(), Vec::new());
    while let Ok(wanted) = buffer.wanted(most) {
        let (now, rest) = stream.split_at(wanted.min(piece).min(stream.len()));
        stream = rest;
        buffer.push(now);
        assert!(buffer.held() <= most + 4);
        match buffer.take(most) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) if now.is_empty() => break,
            Ok(None) => {}
            Err(_) => break,
        }
    }
    frames
}

/// The first byte is the size of the pieces in which the rest arrives.
pub(crate) fn store(data: &[u8]) {
    let Some((piece, stream)) = data.split_first() else { return };
    for frame in cut(stream, usize::from(*piece).max(1), MAX_GREETING_BYTES) {
        if let Some(request) = Request::parse(&frame) {
            assert_eq!(&request.encode()[4..], &frame[..]);
        }
        if let Some(reply) = Reply::parse(&frame) {
            assert_eq!(Reply::parse(&reply.encode()[4..]), Some(reply));
        }
        if let Some(answer) = Answer::parse(&frame) {
            assert_eq!(Answer::parse(&answer.encode()[4..]), Some(answer));
        }
        if let Some(hello) = Hello::parse(&frame) {
            assert!(frame.starts_with(&hello.encode()[4..]));
        }
        if let Some(greeting) = Greeting::parse(&frame) {
            assert!(frame.starts_with(&greeting.encode()[4..]));
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let key = || "stepccl/world.0/info/3".to_owned();
    let stream: Vec<Vec<u8>> = vec![
        Greeting { version: 1, secret: true, nonce: [4; 32] }.encode(),
        Hello { version: 1, secret: false, nonce: [4; 32], tag: [5; 32] }.encode(),
        Answer::Welcome { tag: [1; 32] }.encode(),
        Answer::Refuse { reason: "another version".to_owned() }.encode(),
        Request::Set { key: key(), value: vec![1, 2, 3] }.encode(),
        Request::Get { key: key(), millis: 5000 }.encode(),
        Request::Add { key: key(), n: -1 }.encode(),
        Reply::Value(vec![9; 20]).encode(),
        Reply::Absent.encode(),
        Reply::Sum(i64::MIN).encode(),
        Reply::Counter("not a number".to_owned()).encode(),
        head(&[], 0),
    ];
    let mut seeds: Vec<_> = stream.iter().map(|frame| [&[255][..], frame].concat()).collect();
    seeds.push([&[7][..], &stream.concat()].concat());
    seeds
}
