//! The namespaces that this process is in: ranks that share memory need the same of some of them.

use super::finding::Finding;
use super::scene::Scene;

/// Namespaces, and the number of the machine's own one; where the kernel has no fixed number, that
/// of process 1 stands for it, if that is the machine's own process 1.
const KINDS: [(&str, Option<u64>); 4] = [
    ("user", Some(0xEFFF_FFFD)),
    ("pid", Some(0xEFFF_FFFC)),
    ("ipc", Some(0xEFFF_FFFF)),
    ("net", None),
];

/// Number of the machine's network namespace in kernels that fix it (6.18 and later).
const NET: u64 = 0xEFFF_FFF9;

pub(super) fn check(scene: &Scene) -> Finding {
    let number = |process: &str, kind: &str| {
        let link = std::fs::read_link(scene.proc.join(format!("{process}/ns/{kind}"))).ok()?;
        inode(link.to_str()?)
    };
    let outside = KINDS.iter().all(|(kind, initial)| {
        *kind != "pid" || initial.is_some_and(|initial| number("self", kind) == Some(initial))
    });
    let words = KINDS.map(|(kind, initial)| {
        let own = number("self", kind);
        let fixed = || own.filter(|own| kind == "net" && *own == NET);
        let first = || number("1", kind).filter(|_| outside);
        (kind, own, initial.or_else(fixed).or_else(first))
    });
    judge(&words)
}

/// The number in `pid:[4026531836]`.
fn inode(link: &str) -> Option<u64> {
    link.split_once(":[")?.1.strip_suffix(']')?.parse().ok()
}

fn judge(found: &[(&str, Option<u64>, Option<u64>)]) -> Finding {
    if found.iter().all(|(_, own, _)| own.is_none()) {
        return Finding::not_here("no namespaces are told");
    }
    let word = |own: Option<u64>, initial: Option<u64>| match (own, initial) {
        (Some(own), Some(initial)) if own == initial => "the machine's",
        (Some(_), Some(_)) => "its own",
        _ => "unknown",
    };
    let words: Vec<_> = found
        .iter()
        .map(|(kind, own, initial)| format!("{kind} {}", word(*own, *initial)))
        .collect();
    let inside = found
        .iter()
        .any(|(kind, own, initial)| *kind == "pid" && word(*own, *initial) == "its own");
    let note = if inside {
        "; ranks in other containers copy twice (--pid=host lets them look)"
    } else {
        ""
    };
    Finding::ok(format!("{}{note}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_container_is_told_from_the_machine() {
        assert_eq!(inode("pid:[4026531836]"), Some(0xEFFF_FFFC));
        assert_eq!(inode("pid:4026531836"), None);
        let found =
            judge(&[("user", Some(1), Some(1)), ("pid", Some(2), Some(1)), ("net", Some(3), None)]);
        assert_eq!(found.verdict, Verdict::Ok);
        assert!(found.fact.starts_with("user the machine's, pid its own, net unknown; ranks"));
        assert_eq!(judge(&[("pid", None, None)]).verdict, Verdict::NotHere);
    }

    #[test]
    fn in_a_container_process_1_says_nothing_of_the_machine() {
        use std::os::unix::fs::symlink;
        let (scene, _folder) = Scene::made_up();
        for process in ["self", "1"] {
            let folder = scene.proc.join(process).join("ns");
            std::fs::create_dir_all(&folder).unwrap();
            symlink("pid:[4026532000]", folder.join("pid")).unwrap();
            symlink("net:[4026532001]", folder.join("net")).unwrap();
        }
        let fact = check(&scene).fact;
        assert!(fact.contains("pid its own") && fact.contains("net unknown"), "{fact}");
        for process in ["self", "1"] {
            let pid = scene.proc.join(process).join("ns/pid");
            std::fs::remove_file(&pid).unwrap();
            symlink("pid:[4026531836]", pid).unwrap();
        }
        assert!(check(&scene).fact.contains("pid the machine's, ipc unknown, net the machine's"));
    }

    #[test]
    fn this_process_has_some() {
        assert!(check(&Scene::here(2)).fact.contains("pid "));
    }
}
