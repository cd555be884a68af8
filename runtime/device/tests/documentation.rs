//! The page on memory order names tests that exist, and every test that takes a barrier away.

use std::collections::BTreeSet;

#[test]
fn each_barrier_names_its_test() {
    let page = include_str!("../../../Documentation/memory-model.md");
    let rings = page.split("## Flags and staging").next().unwrap();
    let rows = rings.lines().filter(|line| line.starts_with("| ")).skip(1);
    let named: BTreeSet<_> = rows
        .flat_map(|row| row.rsplit('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .collect();
    let tests = include_str!("loom.rs");
    for name in &named {
        let exists = tests.contains(&format!("fn {name}(")) || tests.contains(&format!("{name}: "));
        assert!(exists, "{name} is no test");
    }
    let without = tests.split("must_fail! {").nth(1).unwrap().lines();
    let names = without.filter_map(|line| line.trim().split_once(": "));
    let unnamed: Vec<_> =
        names.map(|(name, _)| name).filter(|name| !named.contains(name)).collect();
    assert!(named.len() > 8 && unnamed.is_empty(), "not on the page: {unnamed:?}");
}
