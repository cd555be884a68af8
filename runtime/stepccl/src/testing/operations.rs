//! Operations to run, with their memory and what must come out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stepccl_plan::{Algorithm, Collective, DType, Plan, ReduceOp, Topology};

use super::integer::{combine, wrapped};
use super::random::Random;
use crate::collective::CollectiveTask;
use crate::error::With;
use crate::geometry::Geometry;
use crate::pair::{Direction, PairTask};
use crate::prepared::Prepared;
use crate::task::{COLLECTIVES, Entry, Identity, Task, recv_lane, send_lane};
use crate::work::{Keep, WorkState};
use crate::{Call, Memory};

/// What all ranks do together.
#[derive(Clone, Debug)]
pub(super) enum Spec {
    Collective {
        collective: Collective,
        /// Falls back to `direct` where it has no plan.
        algorithm: Algorithm,
        dtype: DType,
        op: ReduceOp,
        count: usize,
        page_bytes: usize,
        depth: u32,
        in_place: bool,
    },
    Message {
        from: u32,
        to: u32,
        bytes: usize,
        tag: i32,
    },
}

/// Bytes that do not move.
#[derive(Debug)]
struct Buffer(Vec<u64>);

impl Buffer {
    fn new(bytes: usize) -> Self {
        Self(vec![0x5a5a_5a5a_5a5a_5a5a; bytes.div_ceil(8)])
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = Vec::new();
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            words.push(u64::from_ne_bytes(word));
        }
        Self(words)
    }

    fn at(&mut self, offset: usize) -> *mut u8 {
        self.0.as_mut_ptr().cast::<u8>().wrapping_add(offset)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }
}

/// One rank's share of an operation.
#[derive(Debug)]
pub(super) struct Part {
    pub spec: Spec,
    pub lane: usize,
    pub state: Arc<WorkState>,
    pub identity: Identity,
    /// Handed to the executor by `entry`.
    task: Option<Task>,
    buffers: Vec<Buffer>,
    /// Buffer, first byte and bytes of the result.
    result: Option<(usize, usize, Vec<u8>)>,
}

impl Part {
    fn new(spec: &Spec, lane: usize, task: Task, name: &'static str, number: u64) -> Self {
        let (bytes, with, tag) = match *spec {
            Spec::Collective { collective, dtype, count, .. } => {
                ((count * dtype.size()) as u64, collective.root().map(With::Root), 0)
            }
            Spec::Message { from, to, bytes, tag } => {
                (bytes as u64, Some(With::Peer(if name == "send" { to } else { from })), tag)
            }
        };
        Self {
            spec: spec.clone(),
            lane,
            state: Arc::default(),
            identity: Identity {
                name,
                sequence: number,
                bytes,
                with,
                tag,
                started: Some(Instant::now()),
                timeout: Duration::from_secs(600),
            },
            task: Some(task),
            buffers: Vec::new(),
            result: None,
        }
    }

    pub fn entry(&mut self) -> Entry {
        Entry {
            lane: self.lane,
            task: self.task.take().expect("an operation is started once"),
            identity: self.identity,
            state: Arc::clone(&self.state),
            keep: Keep::default(),
        }
    }

    /// Whether the result is as it must be.
    pub fn check(&self) -> Result<(), String> {
        let Some((buffer, offset, expected)) = &self.result else { return Ok(()) };
        let found = self.buffers[*buffer].bytes();
        match found[*offset..].iter().zip(expected).position(|(f, e)| f != e) {
            None => Ok(()),
            Some(at) => Err(format!(
                "{:?}: byte {at} of {} is {:#x}, not {:#x}",
                self.spec,
                expected.len(),
                found[offset + at],
                expected[at]
            )),
        }
    }
}

/// What operations are made for.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub topology: Topology,
    pub geometry: Geometry,
}

impl Setting {
    /// Every rank's share of operation `number`; none where the rank has no part in it.
    pub fn parts(&self, spec: &Spec, number: u64, random: &mut Random) -> Vec<Option<Part>> {
        match *spec {
            Spec::Message { from, to, bytes, .. } => {
                let payload: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
                (0..self.geometry.ranks)
                    .map(|rank| message(spec, rank, (from, to), &payload, number))
                    .collect()
            }
            Spec::Collective { .. } => self.collective(spec, number, random),
        }
    }

    fn collective(&self, spec: &Spec, number: u64, random: &mut Random) -> Vec<Option<Part>> {
        let Spec::Collective { collective, dtype, op, count, in_place, .. } = *spec else {
            return Vec::new();
        };
        let ranks = self.geometry.ranks;
        let inputs: Vec<Vec<i128>> = (0..ranks)
            .map(|rank| {
                let len = collective.input_blocks(rank, ranks) as usize * count;
                (0..len).map(|_| wrapped(i128::from(random.next()), dtype)).collect()
            })
            .collect();
        (0..ranks)
            .map(|rank| {
                let input = encode(&inputs[rank as usize], dtype);
                let result = encode(&reference(collective, op, dtype, count, rank, &inputs), dtype);
                let block = count * dtype.size();
                let place = if in_place { place(collective, rank, block) } else { None };
                let (mut buffers, at) = match place {
                    // The input lies in the output, or the output in the input.
                    Some((input_at, result_at)) if !result.is_empty() && !input.is_empty() => {
                        let bytes = (input_at + input.len()).max(result_at + result.len());
                        let mut buffer = vec![0x5a; bytes];
                        buffer[input_at..input_at + input.len()].copy_from_slice(&input);
                        (vec![Buffer::from_bytes(&buffer)], (0, input_at, 0, result_at))
                    }
                    _ => {
                        (vec![Buffer::from_bytes(&input), Buffer::new(result.len())], (0, 0, 1, 0))
                    }
                };
                let (from, from_offset, to, to_offset) = at;
                let memory = |pointer: *mut u8, bytes: usize| {
                    if bytes == 0 { Memory::None } else { Memory::Contiguous(pointer) }
                };
                let call = Call {
                    collective,
                    dtype,
                    op,
                    premul: factor(rank) as f64,
                    count,
                    input: memory(buffers[from].at(from_offset), input.len()),
                    output: memory(buffers[to].at(to_offset), result.len()),
                };
                call.check(rank, ranks).expect("a call that is right");
                // SAFETY:
                // - The buffers move into the part, which lives as long as the executor.
                let task = unsafe { CollectiveTask::new(call, Arc::new(self.prepare(spec, rank))) };
                let mut part =
                    Part::new(spec, COLLECTIVES, Task::Collective(task), collective.name(), number);
                part.buffers = buffers;
                part.result = (!result.is_empty()).then_some((to, to_offset, result));
                Some(part)
            })
            .collect()
    }

    fn prepare(&self, spec: &Spec, rank: u32) -> Prepared {
        let Spec::Collective { collective, algorithm, dtype, count, page_bytes, depth, .. } = *spec
        else {
            unreachable!("messages have no program")
        };
        // As the cost model does: no plan with more flags than there are.
        let program = Plan::new(collective, &self.topology, algorithm)
            .map(|plan| plan.program(rank))
            .ok()
            .filter(|program| program.flags <= self.geometry.phases)
            .unwrap_or_else(|| {
                Plan::new(collective, &self.topology, Algorithm::Direct)
                    .expect("direct always exists")
                    .program(rank)
            });
        let areas = (program.areas as usize).max(1);
        let size = dtype.size();
        let mut depth = depth;
        let fits = |depth: u32| self.geometry.large_bytes / depth as usize / areas / 64 * 64 / size;
        while fits(depth) == 0 {
            depth -= 1;
        }
        let page = (page_bytes / size).min(fits(depth)).max(1);
        Prepared::new(&program, &self.geometry, dtype, count, page, depth)
    }
}

fn message(
    spec: &Spec,
    rank: u32,
    (from, to): (u32, u32),
    payload: &[u8],
    number: u64,
) -> Option<Part> {
    let Spec::Message { tag, .. } = *spec else { return None };
    let (direction, peer, lane, name, mut buffer) = if rank == from {
        (Direction::Send, to, send_lane(to), "send", Buffer::from_bytes(payload))
    } else if rank == to {
        (Direction::Recv, from, recv_lane(from), "recv", Buffer::new(payload.len()))
    } else {
        return None;
    };
    // SAFETY:
    // - The buffer moves into the part, which lives as long as the executor.
    let task = unsafe { PairTask::new(direction, peer, tag, buffer.at(0), payload.len()) };
    let mut part = Part::new(spec, lane, Task::Pair(task), name, number);
    part.buffers.push(buffer);
    part.result = (rank == to && !payload.is_empty()).then(|| (0, 0, payload.to_vec()));
    Some(part)
}

/// Offset of the input in the output, and of the output in the input, where that is in place.
fn place(collective: Collective, rank: u32, block: usize) -> Option<(usize, usize)> {
    let own = rank as usize * block;
    match collective {
        Collective::AllReduce | Collective::Broadcast { .. } | Collective::Reduce { .. } => {
            Some((0, 0))
        }
        Collective::AllGather | Collective::Gather { .. } => Some((own, 0)),
        Collective::ReduceScatter | Collective::Scatter { .. } => Some((0, own)),
        _ => None,
    }
}

/// What `rank` multiplies its input by where it is to multiply.
fn factor(rank: u32) -> i128 {
    i128::from(rank) * 3 - 1
}

fn encode(values: &[i128], dtype: DType) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()[..dtype.size()].to_vec()).collect()
}

/// What `rank` must get.
fn reference(
    collective: Collective,
    op: ReduceOp,
    dtype: DType,
    count: usize,
    rank: u32,
    inputs: &[Vec<i128>],
) -> Vec<i128> {
    let own = rank as usize * count;
    let reduced = |from: usize| -> Vec<i128> {
        let by = if op == ReduceOp::Avg { inputs.len() as i128 } else { 1 };
        let contribution = |(rank, input): (usize, &Vec<i128>), i: usize| match op {
            ReduceOp::PremulSum => input[i] * factor(rank as u32),
            _ => input[i],
        };
        (from..from + count)
            .map(|i| {
                let all = inputs.iter().enumerate().map(|input| contribution(input, i));
                combine(all, op, dtype) / by
            })
            .collect()
    };
    match collective {
        Collective::AllReduce => reduced(0),
        Collective::Reduce { root } if root == rank => reduced(0),
        Collective::ReduceScatter => reduced(own),
        Collective::Broadcast { root } => inputs[root as usize].clone(),
        Collective::Scatter { root } => inputs[root as usize][own..own + count].to_vec(),
        Collective::AllGather => inputs.concat(),
        Collective::Gather { root } if root == rank => inputs.concat(),
        Collective::AllToAll => inputs.iter().flat_map(|v| v[own..own + count].to_vec()).collect(),
        _ => Vec::new(),
    }
}
