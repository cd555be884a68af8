//! Who sleeps and who wakes, over any memory. No wake-up behind a fence is
//! lost: `Documentation/memory-model.md`, "Sleeping".

use std::time::Duration;

use stepccl_memory::MemoryError;

use crate::words::LaneWords;

/// A store is visible to all long before. A nap costs one call of the system.
const NAP: Duration = Duration::from_micros(100);

/// A rank that is about to sleep.
#[derive(Clone, Copy, Debug)]
pub struct Asleep {
    doorbell: u32,
    /// Something is there already, so that there will be no sleep. Whoever finds something sets it.
    pub awake: bool,
}

/// From now on, whoever signals this rank wakes it. It has answered all rings up to `seen`, and looks
/// for what it waits for behind this.
pub fn fall_asleep(own: &impl LaneWords, seen: u32) -> Asleep {
    own.set_sleeping(true);
    // Pairs with the fences of `wake_sleepers` and `nudge`: a flag or doorbell that the looks that
    // follow miss was stored by someone who sees this rank asleep.
    own.fence();
    let doorbell = own.doorbell();
    Asleep { doorbell, awake: doorbell != seen }
}

/// Sleep, unless something is there. The doorbell as the rank answers it now.
///
/// # Errors
///
/// The system refused to wait; the rank is awake then too.
pub fn sleep(
    own: &impl LaneWords,
    asleep: &Asleep,
    limit: Duration,
) -> (u32, Result<(), MemoryError>) {
    let slept = if asleep.awake { Ok(()) } else { own.wait(asleep.doorbell, limit) };
    own.set_sleeping(false);
    (own.doorbell(), slept)
}

/// First of the sleep, short: whoever made a post without a fence may have missed that this rank
/// goes to sleep, and its look the post. Whoever posts later sees it asleep, and what was posted
/// before is found by another look behind this. Returns what is left of the limit.
pub fn nap(own: &impl LaneWords, asleep: &mut Asleep, limit: Duration) -> Duration {
    if !asleep.awake {
        // What the system refuses here it refuses to the sleep that follows, which says so.
        let _ = own.wait(asleep.doorbell, limit.min(NAP));
        asleep.awake = own.doorbell() != asleep.doorbell;
    }
    limit.saturating_sub(NAP)
}

/// Wake those who are seen asleep; `woken` is called for each. One who goes to sleep in this moment
/// may be missed, and looks again after its nap.
///
/// # Errors
///
/// The system refused to wake one.
#[inline]
pub fn wake_who_is_seen<'a, L: LaneWords + 'a>(
    lanes: impl IntoIterator<Item = &'a L>,
    mut woken: impl FnMut(),
) -> Result<(), MemoryError> {
    for lane in lanes {
        if lane.is_sleeping() {
            ring(lane)?;
            woken();
        }
    }
    Ok(())
}

/// Wake those who sleep, behind the store that they wait for; `woken` is called for each.
///
/// # Errors
///
/// The system refused to wake one.
#[inline]
pub fn wake_sleepers<'a, L: LaneWords + 'a>(
    own: &L,
    lanes: impl IntoIterator<Item = &'a L>,
    woken: impl FnMut(),
) -> Result<(), MemoryError> {
    // Pairs with the fence of `fall_asleep`: either that rank sees the store, or this thread sees
    // it sleeping.
    own.fence();
    wake_who_is_seen(lanes, woken)
}

#[cold]
fn ring(lane: &impl LaneWords) -> Result<(), MemoryError> {
    lane.move_doorbell();
    lane.wake()
}

/// Move the doorbell, so that a sleep in progress or to come ends; enter the kernel only if the rank
/// sleeps.
///
/// # Errors
///
/// The system refused to wake it.
pub fn nudge(lane: &impl LaneWords) -> Result<(), MemoryError> {
    lane.move_doorbell();
    // Pairs with the fence of `fall_asleep`: either that rank sees the doorbell moved, or this
    // thread sees it sleeping.
    lane.fence();
    if lane.is_sleeping() { lane.wake() } else { Ok(()) }
}
