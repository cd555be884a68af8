//! Huge pages: large buffers are pinned and copied faster in them.

use super::finding::Finding;
use super::scene::Scene;

const FOLDER: &str = "kernel/mm/transparent_hugepage";

pub(super) fn check(scene: &Scene) -> Finding {
    let word = |file| scene.sys(&format!("{FOLDER}/{file}")).and_then(|text| chosen(&text));
    let meminfo = scene.proc("meminfo").unwrap_or_default();
    judge(word("enabled"), word("shmem_enabled"), reserved(&meminfo))
}

/// The word in brackets of `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Huge pages set aside, from `/proc/meminfo`.
fn reserved(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("HugePages_Total:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn judge(own: Option<String>, shared: Option<String>, reserved: u64) -> Finding {
    let Some(own) = own else {
        return Finding::not_here("this kernel makes none by itself; StepCCL does without");
    };
    let shared = shared.unwrap_or_else(|| "unknown".to_owned());
    let fact = format!("own memory {own}, shared memory {shared}, set aside {reserved}");
    if own == "never" {
        return Finding::warn(
            format!("{fact}: large buffers stay in small pages"),
            format!("echo madvise | sudo tee /sys/{FOLDER}/enabled"),
        );
    }
    Finding::ok(fact)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn the_chosen_word_counts() {
        let (scene, _folder) = Scene::made_up();
        assert_eq!(check(&scene).verdict, Verdict::NotHere);
        scene.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        scene.write("proc/meminfo", "MemTotal: 1 kB\nHugePages_Total:      12\n");
        let found = check(&scene);
        assert_eq!(found.verdict, Verdict::Ok);
        assert_eq!(found.fact, "own memory madvise, shared memory unknown, set aside 12");
        scene.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
        assert_eq!(check(&scene).verdict, Verdict::Warn);
        assert_eq!(chosen("always"), None);
    }
}
