//! Ranks learn what became of others.

use std::thread;
use std::time::{Duration, Instant};

use crate::{Engine, REASON_BYTES, RankState};

use super::drive::PATIENCE;

/// Nobody is lost at first; who says it failed is seen by all others, with whom it blames.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn announcements(mut engines: Vec<Box<dyn Engine>>) {
    for engine in &mut engines {
        assert_eq!(lost(&mut **engine), []);
    }
    let Some((failing, others)) = engines.split_first_mut() else { return };
    let state = RankState::Failed { culprit: 7 };
    failing.announce(state);
    assert_eq!(lost(&mut **failing), [], "a rank is no peer of itself");
    for other in others {
        expect(&mut **other, &[(0, state)]);
        assert_eq!(other.why_lost(0), None, "nothing was explained");
    }
}

/// Who fails says why, in one line that is cut: all others can read it, also when that rank is gone.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn explanations(mut engines: Vec<Box<dyn Engine>>) {
    let reason = format!("a key\nwas pressed{}", "!".repeat(4 * REASON_BYTES));
    let state = RankState::Failed { culprit: 0 };
    let mut failing = engines.remove(0);
    failing.explain(&reason);
    for other in &engines {
        assert_eq!(other.why_lost(0), None, "it has not failed yet");
    }
    failing.announce(state);
    // What comes later is not the reason.
    failing.explain("too late");
    drop(failing);
    for other in &mut engines {
        expect(&mut **other, &[(0, state)]);
        let why = other.why_lost(0).unwrap_or_default();
        assert!(why.starts_with("a key was pressed!!!"), "{why}");
        assert_eq!(why.len(), REASON_BYTES);
    }
}

/// Who leaves in good order is seen to have closed, and a failure outlives its engine; one does
/// not hide the other.
///
/// # Panics
///
/// Where an engine does not conform.
pub fn closing(mut engines: Vec<Box<dyn Engine>>) {
    let mut expected = Vec::new();
    drop(engines.pop());
    expected.insert(0, (engines.len() as u32, RankState::Closed));
    for engine in &mut engines {
        expect(&mut **engine, &expected);
    }
    if let Some(mut failing) = engines.pop() {
        let state = RankState::Failed { culprit: expected[0].0 };
        failing.announce(state);
        drop(failing);
        expected.insert(0, (engines.len() as u32, state));
    }
    for engine in &mut engines {
        expect(&mut **engine, &expected);
    }
}

/// `engine` learns of these, and of no others.
fn expect(engine: &mut dyn Engine, expected: &[(u32, RankState)]) {
    let start = Instant::now();
    while lost(engine).len() < expected.len() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(lost(engine), expected);
}

/// Ranks lost to `engine` and how, by rank.
fn lost(engine: &mut dyn Engine) -> Vec<(u32, RankState)> {
    let mut peers = Vec::new();
    engine.lost_peers(&mut peers);
    let mut lost: Vec<_> = peers.into_iter().map(|peer| (peer.rank, peer.state)).collect();
    lost.sort_by_key(|(rank, _)| *rank);
    lost
}
