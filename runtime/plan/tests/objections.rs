//! What the verifier says to programs that are wrong.

use stepccl_plan::{
    Algorithm, Collective, Place, Plan, Program, Span, Step, Targets, Topology, VerifyError,
    verify_programs,
};

const BARRIER: Collective = Collective::Barrier;

fn programs(collective: Collective, topology: &Topology, algorithm: Algorithm) -> Vec<Program> {
    let plan = Plan::new(collective, topology, algorithm).unwrap();
    (0..topology.ranks()).map(|rank| plan.program(rank)).collect()
}

/// The objection to an all_reduce of two ranks by one exchange, after a change.
fn objection(nodes: u32, change: impl FnOnce(&mut Vec<Program>)) -> VerifyError {
    let topology = Topology::uniform(2, nodes).unwrap();
    let mut programs = programs(Collective::AllReduce, &topology, Algorithm::Direct);
    change(&mut programs);
    verify_programs(Collective::AllReduce, &topology, &programs).unwrap_err()
}

fn span(rank: u32, place: Place) -> Span {
    Span { rank, place, block: 0, first: 0, count: 1 }
}

#[test]
fn a_circle_of_waits_is_named() {
    let topology = Topology::uniform(3, 1).unwrap();
    let program = |rank: u32| Program {
        rank,
        steps: vec![
            Step::Wait { from: (rank + 1) % 3, flag: 0 },
            Step::Signal { flag: 0, to: Targets::All },
        ],
        parts: 1,
        areas: 0,
        flags: 1,
    };
    let programs = [program(0), program(1), program(2)];
    let error = verify_programs(BARRIER, &topology, &programs).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the round stands still: rank 0 step 0 waits for flag 0 of rank 1; \
         rank 1 step 0 waits for flag 0 of rank 2; rank 2 step 0 waits for flag 0 of rank 0"
    );
}

#[test]
fn reading_before_the_wait_is_seen() {
    // Rank 1 runs first in one order and last in another; both must be refused.
    for rank in [0, 1] {
        let error = objection(1, |programs| programs[rank].steps.swap(2, 3));
        let seen =
            matches!(error, VerifyError::Unordered { .. } | VerifyError::ReadBeforeWrite { .. });
        assert!(seen, "{error}");
    }
}

#[test]
fn signalling_before_the_write_is_seen() {
    let error = objection(1, |programs| programs[0].steps.swap(0, 1));
    assert_eq!(
        error.to_string(),
        "rank 1 step 3: reads staging[0] of rank 0 parts 0..1, written by rank 0 step 1, without a \
         wait for a later signal of it"
    );
}

#[test]
fn a_contribution_taken_twice_is_seen() {
    let error = objection(1, |programs| {
        if let Some(Step::Reduce { srcs, .. }) = programs[0].steps.last_mut() {
            srcs.push(srcs[0]);
        }
    });
    assert!(error.to_string().contains("a contribution is taken twice"), "{error}");
}

#[test]
fn an_average_that_is_not_divided_is_seen() {
    let error = objection(1, |programs| {
        if let Some(Step::Reduce { last, .. }) = programs[0].steps.last_mut() {
            *last = false;
        }
    });
    assert!(error.to_string().contains("is not marked as the last"), "{error}");
}

#[test]
fn memory_of_others_is_out_of_reach() {
    let copy = |src, dst| {
        move |programs: &mut Vec<Program>| programs[0].steps.push(Step::Copy { src, dst })
    };
    let own = span(0, Place::Output);
    let cases = [
        (1, span(1, Place::Input), own, "input and output of a peer are its own"),
        (1, own, span(1, Place::Staging), "staging of the same node is not pushed to"),
        (2, span(1, Place::Staging), own, "staging of another node cannot be read"),
        (1, own, span(0, Place::Input), "the input is never written"),
        (1, Span { first: 1, ..own }, own, "the parts are empty or leave the page"),
        (1, Span { block: 1, ..own }, own, "the output has no such block"),
        (1, span(7, Place::Staging), own, "the rank does not exist"),
    ];
    for (nodes, src, dst, problem) in cases {
        let error = objection(nodes, copy(src, dst));
        assert!(matches!(error, VerifyError::BadSpan { .. }), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn a_plan_that_is_right_only_apart_is_refused() {
    // Rank 0 finishes its output before it gives its input away.
    let error = objection(1, |programs| {
        let give: Vec<Step> = programs[0].steps.drain(..2).collect();
        programs[0].steps.extend(give);
    });
    assert_eq!(
        error.to_string(),
        "rank 1 step 3 (InPlace): reduces into output[0] of rank 1 parts 0..1: a source is finished \
         already"
    );
}

#[test]
fn a_barrier_must_hear_of_everyone() {
    let topology = Topology::uniform(4, 1).unwrap();
    let mut programs = programs(BARRIER, &topology, Algorithm::Direct);
    programs[2].steps.retain(|step| *step != Step::Wait { from: 1, flag: 0 });
    let error = verify_programs(BARRIER, &topology, &programs).unwrap_err();
    let leak = VerifyError::BarrierLeaks { rank: 2, missing: 1 };
    // Ranks 0 and 3 had not heard of rank 1 either when they told rank 2.
    assert_eq!(error, leak);
}

#[test]
fn more_flags_than_any_engine_has_are_refused() {
    let error = objection(1, |programs| {
        for program in programs {
            program.flags = u32::MAX;
        }
    });
    assert_eq!(error.to_string(), "program 0: has more than 65,536 flags");
}
