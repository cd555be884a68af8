//! Both queues against a caller that is honest and one that is not.

use driver_parts::parts::completions::Completions;
use driver_parts::parts::few::Few;
use driver_parts::parts::submissions::Submissions;
use proptest::prelude::*;

#[test]
fn tails_that_cannot_be_are_refused() {
    let mut queue = Submissions::new(4);
    for lie in [5, u32::MAX, 1 << 31] {
        assert!(queue.see_tail(lie).is_err(), "{lie}");
    }
    assert_eq!(queue.see_tail(3), Ok(3));
    assert!(queue.see_tail(2).is_err(), "backwards");
    assert_eq!(queue.take(), Some(0));
    assert_eq!(queue.see_tail(5), Ok(4), "the slot that was taken is free");
    assert!(queue.see_tail(6).is_err());
    assert_eq!([(); 5].map(|()| queue.take()), [Some(1), Some(2), Some(3), Some(0), None]);
}

#[test]
fn heads_that_cannot_be_are_refused() {
    let mut queue = Completions::new(4);
    assert!(queue.see_head(1).is_err(), "nothing was posted");
    assert_eq!(queue.reserve(9), 4);
    assert_eq!((queue.room(), queue.reserve(1)), (0, 0));
    assert_eq!((queue.post(), queue.post()), (Some(0), Some(1)));
    for lie in [3, u32::MAX] {
        assert!(queue.see_head(lie).is_err(), "{lie}");
    }
    assert_eq!(queue.see_head(2), Ok(()));
    assert!(queue.see_head(1).is_err(), "backwards");
    assert_eq!((queue.room(), queue.ready(), queue.reserved()), (2, 0, 2));
    queue.give_back(1);
    assert_eq!((queue.post(), queue.post()), (Some(2), None), "no slot without a reservation");
}

#[test]
fn a_few_things_keep_their_order_and_their_number() {
    let mut few = Few::<u32, 2>::new();
    assert_eq!(few.as_slice(), []);
    assert!(few.push(7) && few.push(8) && !few.push(9), "there are two places");
    assert_eq!(few.as_slice(), [7, 8]);
    few.clear();
    assert!(few.push(5));
    assert_eq!(few.as_slice(), [5]);
}

proptest! {
    /// Whatever the caller writes: slots stay in range, never more are promised than there are,
    /// and indices wrap where they must.
    #[test]
    fn claims_cannot_do_harm(log in 0_u32..6, claims in prop::collection::vec(any::<(u8, u32)>(), 0..300)) {
        let entries = 1 << log;
        let (mut taken, mut posted) = (Submissions::new(entries), Completions::new(entries));
        let mut outstanding = 0_u32;
        for (kind, claim) in claims {
            // Most of the lies are near the truth.
            let near = claim % (2 * entries);
            match kind % 6 {
                0 => { let _ = taken.see_tail(claim); }
                1 => { let _ = taken.see_tail(taken.head().wrapping_add(near)); }
                2 => { let _ = posted.see_head(claim); }
                3 => { let _ = posted.see_head(posted.tail().wrapping_sub(near)); }
                4 => if taken.waiting() > 0 && posted.reserve(1) == 1 {
                    prop_assert!(taken.take().unwrap() < entries);
                    outstanding += 1;
                },
                _ => match posted.post() {
                    Some(slot) => { prop_assert!(slot < entries); outstanding -= 1; }
                    None => prop_assert_eq!(outstanding, 0),
                },
            }
            prop_assert_eq!(posted.reserved(), outstanding);
            prop_assert!(taken.waiting() <= entries);
            prop_assert_eq!(posted.ready() + posted.reserved() + posted.room(), entries);
        }
    }
}
