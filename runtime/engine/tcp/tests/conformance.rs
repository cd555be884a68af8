//! The TCP engine is an engine: the contract's tests, for ranks on nodes of their own and mixed.

mod world;

use stepccl_engine::{Engine, conformance};

fn conforms(nodes: &[u32], channels: u32) {
    conformance::all(nodes.len() as u32, &|_| {
        let engines = world::engines(nodes, channels).into_iter();
        engines.map(|engine| Box::new(engine) as Box<dyn Engine>).collect()
    });
}

#[test]
fn one_rank() {
    conforms(&[0], 0);
}

#[test]
fn two_nodes() {
    conforms(&[0, 1], 0);
}

#[test]
fn three_nodes() {
    conforms(&[0, 1, 2], 0);
}

#[test]
fn two_ranks_here_and_one_there() {
    conforms(&[0, 1, 0], 0);
}

#[test]
fn two_nodes_of_two_ranks_with_a_channel() {
    conforms(&[0, 0, 1, 1], 1);
}
