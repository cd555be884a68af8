//! Groups: both ways at once, small ones packed, one end for all.

mod common;

use std::time::Duration;

use common::{Random, Value, config, on_ranks};
use stepccl::{
    AnyMessage, Call, Collective, Communicator, Config, DType, Error, Keep, Memory, Message,
    ReduceOp, Request,
};

fn random_bytes(random: &mut Random, count: usize) -> Vec<i64> {
    (0..count).map(|_| i64::random(random) >> 8).collect()
}

fn memory<T>(data: &mut [T]) -> Memory {
    if data.is_empty() { Memory::None } else { Memory::Contiguous(data.as_mut_ptr().cast()) }
}

/// A collective of a random list: the same on every rank but for the numbers.
#[derive(Clone, Debug)]
struct Spec {
    collective: Collective,
    op: ReduceOp,
    count: usize,
    in_place: bool,
    seed: u64,
}

fn random_list(random: &mut Random, ranks: u32, len: usize) -> Vec<Spec> {
    let root = |random: &mut Random| random.below(ranks as usize) as u32;
    let mut list = Vec::new();
    while list.len() < len {
        let collective = match random.below(9) {
            0 => Collective::AllReduce,
            1 => Collective::Broadcast { root: root(random) },
            2 => Collective::Reduce { root: root(random) },
            3 => Collective::AllGather,
            4 => Collective::ReduceScatter,
            5 => Collective::AllToAll,
            6 => Collective::Gather { root: root(random) },
            7 => Collective::Scatter { root: root(random) },
            _ => Collective::Barrier,
        };
        let op = [ReduceOp::Sum, ReduceOp::Max][random.below(2)];
        // Runs of the same kind, so that there is something to pack.
        for _ in 0..1 + random.below(12) {
            let count = match random.below(20) {
                0 => 0,
                1 => 5000 + random.below(20_000),
                _ => 1 + random.below(200),
            };
            let count = if collective == Collective::Barrier { 0 } else { count };
            let (in_place, seed) = (random.below(2) == 0, random.next());
            list.push(Spec { collective, op, count, in_place, seed });
        }
    }
    list
}

/// Buffers of one collective on this rank, and what its output must be.
struct Buffers {
    input: Vec<i64>,
    output: Vec<i64>,
    expected: Vec<i64>,
    shared: Option<Shared>,
}

/// Which memory is part of the other, from which block on.
#[derive(Clone, Copy)]
enum Shared {
    Input(usize),
    Output(usize),
}

impl Buffers {
    fn new(spec: &Spec, rank: u32, ranks: u32) -> Self {
        let Spec { collective, op, count, .. } = *spec;
        let mut random = Random::from_seed(spec.seed);
        let inputs: Vec<Vec<i64>> = (0..ranks)
            .map(|r| random_bytes(&mut random, collective.input_blocks(r, ranks) as usize * count))
            .collect();
        let me = rank as usize;
        let own = me * count;
        let reduced = |from: usize| -> Vec<i64> {
            let all = |i: usize| inputs.iter().map(move |v| v[i]);
            (from..from + count)
                .map(|i| match op {
                    ReduceOp::Max => all(i).max().unwrap(),
                    _ => all(i).sum(),
                })
                .collect()
        };
        let (expected, shared) = match collective {
            Collective::AllReduce => (reduced(0), Some(Shared::Input(0))),
            Collective::Broadcast { root } => {
                (inputs[root as usize].clone(), Some(Shared::Input(0)))
            }
            Collective::Reduce { root } if root == rank => (reduced(0), Some(Shared::Input(0))),
            Collective::AllGather => (inputs.concat(), Some(Shared::Input(me))),
            Collective::ReduceScatter => (reduced(own), Some(Shared::Output(me))),
            Collective::Gather { root } if root == rank => {
                (inputs.concat(), Some(Shared::Input(me)))
            }
            Collective::Scatter { root } => {
                (inputs[root as usize][own..own + count].to_vec(), Some(Shared::Output(me)))
            }
            Collective::AllToAll => {
                (inputs.iter().flat_map(|v| v[own..own + count].to_vec()).collect(), None)
            }
            _ => (Vec::new(), None),
        };
        let input = inputs[me].clone();
        let output = vec![i64::POISON; expected.len()];
        let usable = spec.in_place && count > 0 && !input.is_empty() && !output.is_empty();
        Self { input, output, expected, shared: shared.filter(|_| usable) }
    }

    fn call(&mut self, spec: &Spec) -> Call {
        let Spec { collective, op, count, .. } = *spec;
        let (mut input, mut output) = (memory(&mut self.input), memory(&mut self.output));
        match self.shared {
            Some(Shared::Input(block)) => {
                let place = &mut self.output[block * count..block * count + self.input.len()];
                place.copy_from_slice(&self.input);
                input = memory(place);
            }
            Some(Shared::Output(block)) => {
                output = memory(&mut self.input[block * count..][..count]);
            }
            None => {}
        }
        Call { collective, dtype: DType::I64, op, premul: 1.0, count, input, output }
    }

    fn found(&self) -> &[i64] {
        match self.shared {
            Some(Shared::Output(block)) => {
                let count = self.expected.len();
                &self.input[block * count..][..count]
            }
            _ => &self.output,
        }
    }
}

fn random_groups(comm: &Communicator, seed: u64, groups: usize) {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut random = Random::from_seed(seed);
    for group in 0..groups {
        let list = random_list(&mut random, ranks, 60);
        let mut buffers: Vec<_> = list.iter().map(|s| Buffers::new(s, rank, ranks)).collect();
        let mut requests = Vec::new();
        for (buffers, spec) in buffers.iter_mut().zip(&list) {
            requests.push(Request::from(buffers.call(spec)));
        }
        // SAFETY:
        // - The buffers live, and are not touched, until the group has ended.
        unsafe {
            if random.below(2) == 0 {
                comm.run_group(requests, None).unwrap();
            } else {
                let work = comm.start_group(requests, None, Keep::default()).unwrap();
                work.wait(None).unwrap();
            }
        }
        for (at, (buffers, spec)) in buffers.iter().zip(&list).enumerate() {
            assert_eq!(
                buffers.found(),
                buffers.expected,
                "group {group}, {at}: {spec:?} on rank {rank} of {ranks}, seed {seed}"
            );
        }
    }
}

#[test]
fn random_lists_on_1_to_8_ranks_are_as_if_each_ran_alone() {
    for ranks in 1..=8 {
        let seed = Random::new().next();
        on_ranks(ranks, &config(), |comm| random_groups(comm, seed, if ranks < 5 { 8 } else { 3 }));
    }
}

#[test]
fn random_lists_through_little_staging_and_channels() {
    let seed = Random::new().next();
    let config =
        Config { buffer_bytes: Some(64 << 10), channels: 2, channel_min_bytes: 512, ..config() };
    on_ranks(3, &config, |comm| random_groups(comm, seed, 5));
}

#[test]
fn everybody_sends_first_to_everybody() {
    // Far above what the slots of a pair hold.
    for (ranks, count) in [(2, 0), (2, 300_000), (5, 70_001)] {
        let seed = Random::new().next();
        on_ranks(ranks, &config(), |comm| {
            let (me, n) = (comm.rank(), comm.ranks());
            let data = |from: u32, to: u32| {
                let mut random = Random::from_seed(seed ^ u64::from(from * 64 + to) << 20);
                random_bytes(&mut random, count + (from + to) as usize)
            };
            let sent: Vec<_> = (0..n).map(|to| data(me, to)).collect();
            let mut got: Vec<_> =
                (0..n).map(|from| vec![i64::POISON; count + (from + me) as usize]).collect();
            let mut group = comm.group();
            for peer in (0..n).filter(|peer| *peer != me) {
                group.send(&sent[peer as usize], peer);
            }
            for (peer, got) in (0..).zip(&mut got).filter(|(peer, _)| *peer != me) {
                group.recv(got, peer);
            }
            group.run().unwrap();
            for peer in (0..n).filter(|peer| *peer != me) {
                assert_eq!(got[peer as usize], data(peer, me), "{peer} to {me}, seed {seed}");
            }
        });
    }
}

#[test]
fn rings_with_collectives_between_and_several_tags() {
    on_ranks(4, &config(), |comm| {
        let (me, n) = (comm.rank(), comm.ranks());
        for round in 0..30i32 {
            let (mut there, mut here) = (vec![me as i32 + round; 3000], vec![-1; 3000]);
            let (mut small, mut got) = ([me as u8; 9], [99u8; 9]);
            let mut sum = [i64::from(me), 1];
            let message =
                |peer: u32, tag, data: *mut u8, bytes| Message { peer, tag, memory: data, bytes };
            let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
            let mut requests = vec![
                Request::Send(message(next, 5, there.as_mut_ptr().cast(), 12_000)),
                Request::Send(message(next, round, small.as_mut_ptr(), 9)),
                Request::Recv(message(previous, 5, here.as_mut_ptr().cast(), 12_000)),
                Request::Recv(message(previous, round, got.as_mut_ptr(), 9)),
            ];
            let memory = memory(&mut sum);
            let call = Call {
                collective: Collective::AllReduce,
                dtype: DType::I64,
                op: ReduceOp::Sum,
                premul: 1.0,
                count: 2,
                input: memory.clone(),
                output: memory,
            };
            // It may stand anywhere between the messages.
            requests.insert(((me + round as u32) % 5) as usize, call.into());
            // SAFETY:
            // - All of it lives, and is not touched, until `run_group` returns.
            unsafe { comm.run_group(requests, None) }.unwrap();
            assert!(here.iter().all(|v| *v == previous as i32 + round));
            assert_eq!((got, sum), ([previous as u8; 9], [6, 4]));
        }
    });
}

#[test]
fn nothing_starts_where_one_request_is_wrong() {
    on_ranks(2, &config(), |comm| {
        let before = comm.stats().operations;
        let peer = 1 - comm.rank();
        let mut data = [1u8; 8];
        let right = Message { peer, tag: 0, memory: data.as_mut_ptr(), bytes: 8 };
        let wrong = Message { peer: 2, ..right };
        // SAFETY:
        // - Nothing is started, and the data lives.
        let error =
            unsafe { comm.run_group(vec![Request::Send(right), Request::Recv(wrong)], None) }
                .unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { name: "peer", .. }), "{error}");
        assert_eq!(comm.stats().operations, before);
        let any = Request::RecvAny(AnyMessage { tag: 0, memory: data.as_mut_ptr(), bytes: 8 });
        // SAFETY:
        // - As above.
        let error = unsafe { comm.run_group(vec![any.clone(), any], None) }.unwrap_err();
        assert!(error.to_string().contains("several receives from any source"), "{error}");
        // An empty one is done, and the communicator works.
        // SAFETY:
        // - There are no requests.
        unsafe {
            comm.run_group(Vec::new(), None).unwrap();
            let work = comm.start_group(Vec::new(), None, Keep::new(3)).unwrap();
            assert!(work.is_done());
            work.wait(None).unwrap();
        }
        comm.barrier().unwrap();
    });
}

#[test]
fn what_is_kept_goes_when_the_last_operation_ends() {
    on_ranks(2, &config(), |comm| {
        let (tell, told) = std::sync::mpsc::channel::<()>();
        struct Kept(
            #[expect(dead_code, reason = "it tells by being dropped")] std::sync::mpsc::Sender<()>,
        );
        let peer = 1 - comm.rank();
        let (mut there, mut here, mut sum) = ([comm.rank() as i32; 4], [9i32; 4], [1i64; 3]);
        let message = |memory: *mut i32| Message { peer, tag: 0, memory: memory.cast(), bytes: 16 };
        let memory = memory(&mut sum);
        let call = Call {
            collective: Collective::AllReduce,
            dtype: DType::I64,
            op: ReduceOp::Sum,
            premul: 1.0,
            count: 3,
            input: memory.clone(),
            output: memory,
        };
        let requests = vec![
            Request::Recv(message(here.as_mut_ptr())),
            call.into(),
            Request::Send(message(there.as_mut_ptr())),
        ];
        // SAFETY:
        // - All of it lives, and is not touched, until the work is waited for.
        let work = unsafe { comm.start_group(requests, None, Keep::new(Kept(tell))) }.unwrap();
        work.wait(None).unwrap();
        assert!(told.recv_timeout(Duration::from_secs(5)).is_err(), "nothing is ever sent");
        assert_eq!((here, sum), ([peer as i32; 4], [2; 3]));
    });
}

#[test]
fn a_group_that_fails_tells_what_failed_first() {
    on_ranks(2, &config(), |comm| {
        if comm.rank() == 1 {
            comm.send(&[1u8; 7], 0).unwrap();
            comm.recv(&mut [0u8; 8], 0).unwrap();
            let error = comm.recv(&mut [0u8; 8], 0).unwrap_err();
            assert!(matches!(error, Error::PeerLost { .. }), "{error}");
            return;
        }
        let (mut data, mut more) = ([0u8; 8], [0u8; 8]);
        let message = |memory| Message { peer: 1, tag: 0, memory, bytes: 8 };
        let requests = vec![
            Request::Send(message(more.as_mut_ptr())),
            Request::Recv(message(data.as_mut_ptr())),
            Request::Collective(Call {
                collective: Collective::AllReduce,
                dtype: DType::U8,
                op: ReduceOp::Max,
                premul: 1.0,
                count: 100_000,
                input: memory(&mut vec![0u8; 100_000].leak()[..]),
                output: memory(&mut vec![0u8; 100_000].leak()[..]),
            }),
        ];
        // SAFETY:
        // - All of it lives, and is not touched, until the work is waited for.
        let work = unsafe { comm.start_group(requests, None, Keep::default()) }.unwrap();
        let error = work.wait(None).unwrap_err();
        assert!(matches!(error, Error::MessageMismatch { sent_bytes: 7, .. }), "{error}");
    });
}
