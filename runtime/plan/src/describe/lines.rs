//! Steps as short lines, repetition folded.

use std::fmt::Write;

use crate::{Place, Program, Span, Step, Targets};

/// A step as words, with its numbers apart so that steps alike can share a line.
#[derive(PartialEq)]
enum Word {
    Text(&'static str),
    Number(u32),
}

/// The steps of a program, one line for each run of alike steps or groups of steps.
pub(super) fn of(program: &Program) -> Vec<String> {
    let steps: Vec<Vec<Word>> = program.steps.iter().map(|step| words(step, program)).collect();
    let mut lines = Vec::new();
    let mut next = 0;
    while next < steps.len() {
        let (period, times) = repetition(&steps[next..]);
        let indent = if period > 1 {
            lines.push(format!("{times} times:"));
            "  "
        } else {
            ""
        };
        for offset in 0..period {
            let alike: Vec<_> =
                (0..times).map(|turn| &steps[next + turn * period + offset][..]).collect();
            lines.push(format!("{indent}{}", folded(&alike)));
        }
        next += period * times;
    }
    lines
}

fn alike(a: &[Word], b: &[Word]) -> bool {
    let same = |(a, b): (&Word, &Word)| match (a, b) {
        (Word::Text(a), Word::Text(b)) => a == b,
        (Word::Number(_), Word::Number(_)) => true,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The group of steps at the start, and how often it comes: the shortest that covers most.
fn repetition(steps: &[Vec<Word>]) -> (usize, usize) {
    const LONGEST: usize = 6;
    let mut best = (1, 1);
    for period in 1..=LONGEST.min(steps.len()) {
        let matching = (period..steps.len())
            .take_while(|index| alike(&steps[*index], &steps[index % period]))
            .count();
        let times = 1 + matching / period;
        let enough = if period == 1 { 2 } else { 3 };
        if times >= enough && times * period > best.0 * best.1 {
            best = (period, times);
        }
    }
    best
}

/// One line for steps alike: numbers that differ are shown as ranges.
fn folded(steps: &[&[Word]]) -> String {
    let mut line = String::new();
    let width = steps.first().map_or(0, |step| step.len());
    for index in 0..width {
        let mut numbers = Vec::new();
        for step in steps {
            match &step[index] {
                Word::Text(text) => {
                    line.push_str(text);
                    break;
                }
                Word::Number(number) => numbers.push(*number),
            }
        }
        line.push_str(&ranges(&numbers));
    }
    line
}

/// Numbers as ranges, up or down or with a stride; a constant as itself.
fn ranges(numbers: &[u32]) -> String {
    const SHOWN: usize = 4;
    if let [first, second, .., last] = *numbers
        && let Some(stride) = second.checked_sub(first).filter(|stride| *stride > 1)
        && numbers.windows(2).all(|pair| pair[0].checked_add(stride) == Some(pair[1]))
    {
        return format!("{first}..{last} by {stride}");
    }
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers.iter().copied() {
        match ranges.last_mut() {
            Some((first, last))
                if number == *last
                    || (number == *last + 1 && *first <= *last)
                    || (number + 1 == *last && *first >= *last) =>
            {
                *last = number;
            }
            _ => ranges.push((number, number)),
        }
    }
    let mut text = String::new();
    for (index, (first, last)) in ranges.iter().take(SHOWN).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to a string does not fail.
        let _ = if first == last {
            write!(text, "{comma}{first}")
        } else {
            write!(text, "{comma}{first}..{last}")
        };
    }
    if ranges.len() > SHOWN {
        text.push_str(",...");
    }
    text
}

fn words(step: &Step, program: &Program) -> Vec<Word> {
    use Word::{Number, Text};
    let mut words = Vec::new();
    match step {
        Step::Copy { src, dst } => {
            words.push(Text("copy "));
            place(&mut words, *src, program);
            words.push(Text(" -> "));
            place(&mut words, *dst, program);
            parts(&mut words, *dst, program);
        }
        Step::Reduce { srcs, dst, last } => {
            words.extend([Text("reduce "), Number(srcs.len() as u32), Text(": ")]);
            for (index, src) in srcs.iter().enumerate() {
                // Of many sources the first two and the last.
                if srcs.len() <= 4 || index < 2 || index + 1 == srcs.len() {
                    let gap = srcs.len() > 4 && index + 1 == srcs.len();
                    words.push(Text(match (index, gap) {
                        (0, _) => "",
                        (_, true) => " ... ",
                        _ => " + ",
                    }));
                    place(&mut words, *src, program);
                }
            }
            words.push(Text(" -> "));
            place(&mut words, *dst, program);
            parts(&mut words, *dst, program);
            words.push(Text(if *last { ", last" } else { "" }));
        }
        Step::Signal { flag, to } => {
            words.extend([Text("signal flag "), Number(*flag), Text(" to ")]);
            match to {
                Targets::One(rank) => words.extend([Text("rank "), Number(*rank)]),
                Targets::All => words.push(Text("all")),
            }
        }
        Step::Wait { from, flag } => {
            words.extend([Text("wait for flag "), Number(*flag), Text(" of rank "), Number(*from)]);
        }
    }
    words
}

fn place(words: &mut Vec<Word>, span: Span, program: &Program) {
    words.push(Word::Text(match span.place {
        Place::Input => "input[",
        Place::Output => "output[",
        Place::Staging => "staging[",
    }));
    words.push(Word::Number(span.block));
    words.push(Word::Text("]"));
    if span.rank != program.rank {
        words.extend([Word::Text(" of rank "), Word::Number(span.rank)]);
    }
}

/// Which parts, where it is not the whole page.
fn parts(words: &mut Vec<Word>, span: Span, program: &Program) {
    if span.count == program.parts {
        return;
    }
    if span.count == 1 {
        words.extend([Word::Text(", part "), Word::Number(span.first)]);
    } else {
        let last = span.first + span.count - 1;
        words.extend([Word::Text(", parts "), Word::Number(span.first)]);
        words.extend([Word::Text(" to "), Word::Number(last)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fold_to_ranges() {
        assert_eq!(ranges(&[5, 5, 5]), "5");
        assert_eq!(ranges(&[3, 4, 5, 0, 1]), "3..5,0..1");
        assert_eq!(ranges(&[4, 3, 2]), "4..2");
        assert_eq!(ranges(&[8, 16, 24]), "8..24 by 8");
        assert_eq!(ranges(&[1, 9, 2, 8, 3, 7]), "1,9,2,8,...");
    }

    #[test]
    fn repeated_steps_share_a_line() {
        let copy = |block| Step::Copy {
            src: Span { rank: 1, place: Place::Staging, block: 0, first: 0, count: 1 },
            dst: Span { rank: 0, place: Place::Output, block, first: 0, count: 1 },
        };
        let wait = |from| Step::Wait { from, flag: 0 };
        let steps = vec![wait(1), copy(1), wait(2), copy(2), wait(3), copy(3), wait(7)];
        let program = Program { rank: 0, steps, parts: 1, areas: 1, flags: 1 };
        assert_eq!(
            of(&program),
            [
                "3 times:",
                "  wait for flag 0 of rank 1..3",
                "  copy staging[0] of rank 1 -> output[1..3]",
                "wait for flag 0 of rank 7",
            ]
        );
    }
}
