//! Whether ranks have a core each: it decides how long a thread looks before it sleeps.

use std::collections::BTreeSet;

/// Line of a note that lists a rank's cores.
const LINE: &str = "cores=";

/// Cores this thread may run on, as the kernel writes them: `0-3,8`.
pub(crate) fn own_cores() -> String {
    // Where the kernel does not say, the rank counts as one without a core of its own.
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap_or_default().trim().to_owned()
}

/// The line for a rank's note.
pub(crate) fn note(cores: &str) -> String {
    format!("{LINE}{cores}\n")
}

/// Whether the ranks of one node, which have these notes, have fewer cores than threads: each has
/// `threads`.
pub(crate) fn share_cores(notes: &[&[u8]], threads: usize) -> bool {
    let mut cores = BTreeSet::new();
    for note in notes {
        let note = String::from_utf8_lossy(note);
        let list = note.lines().find_map(|line| line.strip_prefix(LINE)).unwrap_or_default();
        cores.extend(parse(list));
    }
    cores.len() < notes.len() * threads
}

/// Most cores a list may name.
const MAX_CORES: u32 = 1 << 16;

fn parse(list: &str) -> impl Iterator<Item = u32> + '_ {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) =
                (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
            (last < MAX_CORES).then_some(first..=last)
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(lists: &[&str]) -> bool {
        let notes: Vec<_> = lists.iter().map(|list| note(list)).collect();
        share_cores(&notes.iter().map(String::as_bytes).collect::<Vec<_>>(), 1)
    }

    #[test]
    fn ranks_share_where_there_are_fewer_cores_than_ranks() {
        assert!(!share(&["0-1", "0-1"]));
        assert!(!share(&["0", "1"]));
        assert!(!share(&["0-1,4", "0-1,4", "0-1,4"]));
        assert!(share(&["0", "0"]));
        assert!(share(&["0-1", "0-1", "0-1"]));
    }

    #[test]
    fn more_threads_need_more_cores() {
        let notes = [note("0-3").into_bytes(), note("0-3").into_bytes()];
        let notes = notes.each_ref().map(Vec::as_slice);
        assert!(!share_cores(&notes, 2));
        assert!(share_cores(&notes, 3));
    }

    #[test]
    fn nonsense_counts_as_no_core() {
        assert!(share(&["", "x-y", "4294967295", "5-1"]));
    }

    #[test]
    fn the_kernel_says_where_this_thread_may_run() {
        assert!(parse(&own_cores()).count() >= 1);
    }
}
