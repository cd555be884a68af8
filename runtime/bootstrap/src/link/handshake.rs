//! Who proves what to whom. Pure: frames in, frames out.
//!
//! The higher rank connects, so it speaks first and proves the secret first; a stranger who
//! connects gets a random number and nothing else. Both proofs cover the communicator's name, what
//! both ranks published (rank, world size, versions, host, socket, a nonce) and a fresh nonce of
//! each side, under a label for each direction: a proof fits one connection and one direction only.

use super::frame::Frame;
use crate::Secret;
use crate::auth::{Nonce, Transcript};
use crate::info::{SignedInfo, VERSION};

/// What a rank knows before it connects.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) rank: u32,
    pub(crate) secret: Secret,
    /// One entry a rank.
    pub(crate) infos: Vec<SignedInfo>,
}

impl Session {
    fn transcript(&self, label: &str, low: Side<'_>, high: Side<'_>) -> Transcript {
        Transcript::new(&self.secret, label)
            .part(self.name.as_bytes())
            .part(&low.info.digest)
            .part(&high.info.digest)
            .part(low.nonce)
            .part(high.nonce)
    }

    fn info(&self, rank: u32) -> Option<&SignedInfo> {
        self.infos.get(rank as usize)
    }
}

#[derive(Clone, Copy)]
struct Side<'a> {
    info: &'a SignedInfo,
    nonce: &'a Nonce,
}

const CONNECTING: &str = "stepccl link 1: connecting rank";
const ACCEPTING: &str = "stepccl link 1: accepting rank";

/// What a side does with a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send this and wait.
    Send(Frame),
    /// Send this, if anything; the link to this rank is made.
    Linked(u32, Option<Frame>),
    /// Send this refusal and close; `reason` is for this side.
    Fail { reason: String, send: Frame },
    /// The other side refused with this reason.
    Refused(String),
}

fn fail(reason: String) -> Step {
    Step::Fail { send: Frame::Refuse { reason: reason.clone() }, reason }
}

/// The side of the higher rank.
#[derive(Debug)]
pub(crate) struct Connector {
    peer: u32,
    own: Nonce,
    /// The peer's nonce, once it challenged.
    theirs: Option<Nonce>,
}

impl Connector {
    /// Begin towards `peer` with a fresh `nonce`.
    pub(crate) fn start(session: &Session, peer: u32, nonce: Nonce) -> (Self, Frame) {
        let hello = Frame::Hello { version: VERSION, from: session.rank, to: peer, nonce };
        (Self { peer, own: nonce, theirs: None }, hello)
    }

    pub(crate) fn on(&mut self, session: &Session, frame: Frame) -> Step {
        let (Some(low), Some(high)) = (session.info(self.peer), session.info(session.rank)) else {
            return fail(format!("there is no rank {}", self.peer));
        };
        let high = Side { info: high, nonce: &self.own };
        match (frame, self.theirs) {
            (Frame::Refuse { reason }, _) => Step::Refused(reason),
            (Frame::Challenge { nonce }, None) => {
                let low = Side { info: low, nonce: &nonce };
                let tag = session.transcript(CONNECTING, low, high).tag();
                self.theirs = Some(nonce);
                Step::Send(Frame::Proof { tag })
            }
            (Frame::Welcome { tag }, Some(nonce)) => {
                let low = Side { info: low, nonce: &nonce };
                if session.transcript(ACCEPTING, low, high).verify(&tag) {
                    Step::Linked(self.peer, None)
                } else {
                    fail(format!("rank {} did not prove the job's secret", self.peer))
                }
            }
            (frame, _) => fail(format!("{} is not due", kind(&frame))),
        }
    }
}

/// The side of the lower rank.
#[derive(Debug)]
pub(crate) struct Acceptor {
    own: Nonce,
    /// Rank and nonce of the other side, once it said hello. Not proven.
    claimed: Option<(u32, Nonce)>,
}

impl Acceptor {
    /// Wait for a hello; `nonce` is fresh.
    pub(crate) const fn new(nonce: Nonce) -> Self {
        Self { own: nonce, claimed: None }
    }

    /// Rank that the other side says it is.
    pub(crate) fn claimed(&self) -> Option<u32> {
        self.claimed.map(|(rank, _)| rank)
    }

    pub(crate) fn on(&mut self, session: &Session, frame: Frame) -> Step {
        match (frame, self.claimed) {
            (Frame::Refuse { reason }, _) => Step::Refused(reason),
            (Frame::Hello { version, from, to, nonce }, None) => {
                if version != VERSION {
                    return fail(format!("version {version}, this rank speaks {VERSION}"));
                }
                if to != session.rank || from <= session.rank || session.info(from).is_none() {
                    return fail(format!(
                        "a hello from rank {from} to rank {to}; this is rank {} of {}, to which \
                         higher ranks connect",
                        session.rank,
                        session.infos.len(),
                    ));
                }
                self.claimed = Some((from, nonce));
                Step::Send(Frame::Challenge { nonce: self.own })
            }
            (Frame::Proof { tag }, Some((from, nonce))) => {
                let (Some(low), Some(high)) = (session.info(session.rank), session.info(from))
                else {
                    return fail(format!("there is no rank {from}"));
                };
                let low = Side { info: low, nonce: &self.own };
                let high = Side { info: high, nonce: &nonce };
                if !session.transcript(CONNECTING, low, high).verify(&tag) {
                    return fail(format!(
                        "the proof of the job's secret as rank {from} is wrong; give all ranks the \
                         same secret"
                    ));
                }
                let tag = session.transcript(ACCEPTING, low, high).tag();
                Step::Linked(from, Some(Frame::Welcome { tag }))
            }
            (frame, _) => fail(format!("{} is not due", kind(&frame))),
        }
    }
}

const fn kind(frame: &Frame) -> &'static str {
    match frame {
        Frame::Hello { .. } => "a hello",
        Frame::Challenge { .. } => "a challenge",
        Frame::Proof { .. } => "a proof",
        Frame::Welcome { .. } => "a welcome",
        Frame::Refuse { .. } => "a refusal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Info;

    fn session(rank: u32, secret: u8) -> Session {
        let secret = Secret::from_bytes([secret; 32]);
        let infos = (0..3)
            .map(|rank| {
                let info = Info {
                    rank,
                    ranks: 3,
                    pid: 1,
                    uid: 1,
                    host: [0; 16],
                    socket: [rank as u8; 16],
                    nonce: [7; 32],
                    node: String::new(),
                    note: vec![],
                    everywhere: false,
                };
                SignedInfo { info, digest: [rank as u8; 32] }
            })
            .collect();
        Session { name: "w".to_owned(), rank, secret, infos }
    }

    fn sent(step: Step) -> Frame {
        match step {
            Step::Send(frame) | Step::Linked(_, Some(frame)) => frame,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_sides_link() {
        let (low, high) = (session(0, 1), session(2, 1));
        let (mut connector, hello) = Connector::start(&high, 0, [1; 32]);
        let mut acceptor = Acceptor::new([2; 32]);
        let challenge = sent(acceptor.on(&low, hello));
        assert_eq!(acceptor.claimed(), Some(2));
        let proof = sent(connector.on(&high, challenge));
        let Step::Linked(2, Some(welcome)) = acceptor.on(&low, proof) else { panic!() };
        assert_eq!(connector.on(&high, welcome), Step::Linked(0, None));
    }

    #[test]
    fn another_secret_is_refused_on_both_sides() {
        let (low, high) = (session(0, 1), session(2, 9));
        let (mut connector, hello) = Connector::start(&high, 0, [1; 32]);
        let mut acceptor = Acceptor::new([2; 32]);
        let challenge = sent(acceptor.on(&low, hello));
        let proof = sent(connector.on(&high, challenge));
        let Step::Fail { reason, send } = acceptor.on(&low, proof) else { panic!() };
        assert!(reason.contains("rank 2 is wrong"), "{reason}");
        assert_eq!(connector.on(&high, send), Step::Refused(reason));
    }

    #[test]
    fn a_proof_fits_one_connection_and_one_direction() {
        let (low, high) = (session(0, 1), session(2, 1));
        let (mut connector, hello) = Connector::start(&high, 0, [1; 32]);
        let mut acceptor = Acceptor::new([2; 32]);
        let proof = sent(connector.on(&high, sent(acceptor.on(&low, hello.clone()))));
        let Frame::Proof { tag } = proof else { panic!() };
        // Replayed to a connection with another challenge.
        let mut again = Acceptor::new([3; 32]);
        sent(again.on(&low, hello));
        assert!(matches!(again.on(&low, Frame::Proof { tag }), Step::Fail { .. }));
        // Sent back as the welcome.
        assert!(matches!(connector.on(&high, Frame::Welcome { tag }), Step::Fail { .. }));
        // To another rank than the one it was made for.
        let middle = session(1, 1);
        let mut other = Acceptor::new([2; 32]);
        sent(other.on(&middle, Connector::start(&high, 1, [1; 32]).1));
        assert!(matches!(other.on(&middle, Frame::Proof { tag }), Step::Fail { .. }));
    }

    #[test]
    fn frames_out_of_turn_and_wrong_ranks_are_refused() {
        let low = session(1, 1);
        let hello = |version, from, to| Frame::Hello { version, from, to, nonce: [0; 32] };
        for frame in [
            hello(9, 2, 1),
            hello(VERSION, 0, 1),
            hello(VERSION, 1, 1),
            hello(VERSION, 3, 1),
            hello(VERSION, u32::MAX, 1),
            hello(VERSION, 2, 0),
            Frame::Proof { tag: [0; 32] },
            Frame::Welcome { tag: [0; 32] },
        ] {
            let step = Acceptor::new([2; 32]).on(&low, frame);
            assert!(matches!(step, Step::Fail { .. }), "{step:?}");
        }
        let (mut connector, _) = Connector::start(&low, 0, [1; 32]);
        let early = connector.on(&low, Frame::Welcome { tag: [0; 32] });
        assert!(matches!(early, Step::Fail { .. }));
    }
}
