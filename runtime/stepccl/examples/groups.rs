//! What groups, uneven collectives and short messages cost, between two processes.
//!
//! `cargo run --release --example groups -p stepccl`, on a machine with two idle cores. The figures
//! of a line are measured in turns in one run, so that their ratio holds whatever the machine does.

use std::process::{Command, Stdio};
use std::time::Instant;

use stepccl::{
    Call, Collective, Communicator, Config, DType, FileStore, Memory, Message, ReduceOp, Request,
    Uneven, UnevenCall,
};

type Failure = Box<dyn std::error::Error>;

/// Set for the second process: the directory of the store.
const STORE: &str = "STEPCCL_EXAMPLE_STORE";
const TURNS: usize = 60;

fn main() -> Result<(), Failure> {
    if let Some(store) = std::env::var_os(STORE) {
        return play(&FileStore::open(store.as_ref())?, 1);
    }
    let store = tempfile::tempdir()?;
    let mut other = Command::new(std::env::current_exe()?)
        .env(STORE, store.path())
        .stdin(Stdio::null())
        .spawn()?;
    let outcome = play(&FileStore::open(store.path())?, 0);
    if outcome.is_err() {
        // It waits for this one otherwise.
        other.kill()?;
    }
    let status = other.wait()?;
    outcome?;
    if status.success() { Ok(()) } else { Err(format!("the second process: {status}").into()) }
}

fn play(store: &FileStore, rank: u32) -> Result<(), Failure> {
    let ranks = Communicator::new(store, "groups.0", rank, 2, &Config::default())?;
    if rank == 0 {
        println!(
            "{:<52} {:>10} {:>10} {:>7}",
            "median of two processes", "us", "us alone", "ratio"
        );
    }
    for (count, bytes) in [(1000, 64), (1000, 1024), (250, 4096), (60, 16 << 10), (16, 64 << 10)] {
        let times = small_and_large(&ranks, count, bytes)?;
        row(rank, &format!("{count} all_reduces of {bytes} B in a group, and as one"), times);
    }
    for bytes in [8, 1024, 64 << 10, 4 << 20] {
        let times = uneven(&ranks, bytes)?;
        row(rank, &format!("uneven all_gather of about {bytes} B, and even"), times);
    }
    for bytes in [8, 1024, 16 << 10] {
        let times = messages(&ranks, bytes)?;
        row(rank, &format!("send and recv of {bytes} B in turns, and all_reduce"), times);
    }
    Ok(())
}

fn row(rank: u32, what: &str, [first, second]: [f64; 2]) {
    if rank == 0 {
        let ratio = first / second;
        println!("{what:<52} {:>10.2} {:>10.2} {ratio:>7.2}", first * 1e6, second * 1e6);
    }
}

/// Medians of two things that are done in turns.
fn turns(
    ranks: &Communicator,
    mut first: impl FnMut() -> Result<(), Failure>,
    mut second: impl FnMut() -> Result<(), Failure>,
) -> Result<[f64; 2], Failure> {
    let mut times = [Vec::new(), Vec::new()];
    let mut time = |at: usize, work: &mut dyn FnMut() -> Result<(), Failure>| {
        ranks.barrier()?;
        let start = Instant::now();
        work()?;
        times[at].push(start.elapsed().as_secs_f64());
        Ok::<_, Failure>(())
    };
    for _ in 0..TURNS {
        time(0, &mut first)?;
        time(1, &mut second)?;
    }
    Ok(times.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    }))
}

fn all_reduce(data: &mut [f32]) -> Call {
    let memory = Memory::Contiguous(data.as_mut_ptr().cast());
    Call {
        collective: Collective::AllReduce,
        dtype: DType::F32,
        op: ReduceOp::Sum,
        premul: 1.0,
        count: data.len(),
        input: memory.clone(),
        output: memory,
    }
}

fn small_and_large(ranks: &Communicator, count: usize, bytes: usize) -> Result<[f64; 2], Failure> {
    let mut small: Vec<Vec<f32>> = vec![vec![0.0; bytes / 4]; count];
    let mut large = vec![0.0f32; bytes / 4 * count];
    turns(
        ranks,
        || {
            let requests = small.iter_mut().map(|data| all_reduce(data).into()).collect();
            // SAFETY:
            // - The data lives, and is not touched, until the group has ended.
            Ok(unsafe { ranks.run_group(requests, None) }?)
        },
        || Ok(ranks.all_reduce_in_place(&mut large, ReduceOp::Sum)?),
    )
}

fn uneven(ranks: &Communicator, bytes: usize) -> Result<[f64; 2], Failure> {
    let counts: Box<[usize]> = Box::new([bytes + 1, bytes - 1]);
    let mut own = vec![1u8; counts[ranks.rank() as usize]];
    let mut all = vec![0u8; 2 * bytes];
    let even = vec![1u8; bytes];
    let mut even_all = vec![0u8; 2 * bytes];
    turns(
        ranks,
        || {
            let call = UnevenCall {
                uneven: Uneven::AllGather { counts: counts.clone() },
                dtype: DType::U8,
                op: ReduceOp::Sum,
                premul: 1.0,
                input: Memory::Contiguous(own.as_mut_ptr()),
                output: Memory::Contiguous(all.as_mut_ptr()),
            };
            // SAFETY:
            // - The buffers have as many bytes as the counts say, and live until `run` returns.
            Ok(unsafe { ranks.run(call, None) }?)
        },
        || Ok(ranks.all_gather(&even, &mut even_all)?),
    )
}

/// Half of a round trip, against an all_reduce of as much.
fn messages(ranks: &Communicator, bytes: usize) -> Result<[f64; 2], Failure> {
    const TRIPS: usize = 50;
    let mut data = vec![0u8; bytes];
    let mut sum = vec![0.0f32; bytes / 4];
    let peer = 1 - ranks.rank();
    let [both, reduce] = turns(
        ranks,
        || {
            for _ in 0..TRIPS {
                let message = Message { peer, tag: 0, memory: data.as_mut_ptr(), bytes };
                let (send, recv) = (Request::Send(message), Request::Recv(message));
                let order = if peer == 1 { [send, recv] } else { [recv, send] };
                for request in order {
                    // SAFETY:
                    // - The data lives until `run` returns.
                    unsafe { ranks.run(request, None) }?;
                }
            }
            Ok(())
        },
        || {
            for _ in 0..TRIPS {
                ranks.all_reduce_in_place(&mut sum, ReduceOp::Sum)?;
            }
            Ok(())
        },
    )?;
    Ok([both / (2 * TRIPS) as f64, reduce / TRIPS as f64])
}
