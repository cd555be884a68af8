//! The buffers of one size, the call on them, and the check of its result.

use stepccl::{Communicator, Outcome, ReduceOp};

use crate::buffer::Buffer;
use crate::operation::Operation;

const ROOT: u32 = 0;

/// One operation of one size.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    communicator: &'a Communicator,
    operation: Operation,
    input: Buffer,
    output: Buffer,
    /// Elements of each rank.
    part: usize,
}

impl<'a> Job<'a> {
    /// `bytes` is the larger of input and output; at least one element a rank.
    pub fn new(communicator: &'a Communicator, operation: Operation, bytes: usize) -> Self {
        let ranks = communicator.ranks() as usize;
        let part = (bytes / size_of::<f32>() / ranks).max(1);
        let [input, output] = [0; 2].map(|_| Buffer::new(part * ranks));
        Self { communicator, operation, input, output, part }
    }

    /// One call.
    pub fn call(&mut self) -> Outcome {
        let Self { communicator, input, output, part, .. } = self;
        let at_root = communicator.rank() == ROOT;
        match self.operation {
            Operation::AllReduce => {
                communicator.all_reduce(input.floats(), output.floats_mut(), ReduceOp::Sum)
            }
            Operation::AllGather => {
                communicator.all_gather(&input.floats()[..*part], output.floats_mut())
            }
            Operation::ReduceScatter => communicator.reduce_scatter(
                input.floats(),
                &mut output.floats_mut()[..*part],
                ReduceOp::Sum,
            ),
            Operation::AllToAll => communicator.all_to_all(input.floats(), output.floats_mut()),
            Operation::Broadcast => communicator.broadcast(input.floats_mut(), ROOT),
            Operation::Reduce => {
                let output = at_root.then(|| output.floats_mut());
                communicator.reduce(input.floats(), output, ROOT, ReduceOp::Sum)
            }
            Operation::Gather => {
                let output = at_root.then(|| output.floats_mut());
                communicator.gather(&input.floats()[..*part], output, ROOT)
            }
            Operation::Scatter => {
                let input = at_root.then(|| input.floats());
                communicator.scatter(input, &mut output.floats_mut()[..*part], ROOT)
            }
            Operation::SendRecv => send_recv(communicator, input, output),
            Operation::PingPong => match communicator.rank() {
                0 => {
                    communicator.send(input.floats(), 1)?;
                    communicator.recv(output.floats_mut(), 1)
                }
                1 => {
                    communicator.recv(output.floats_mut(), 0)?;
                    communicator.send(output.floats(), 0)
                }
                _ => Ok(()),
            },
            Operation::Barrier => communicator.barrier(),
        }
    }

    /// The first wrong element of one call on known numbers; none where all are right.
    pub fn first_wrong(&mut self) -> Result<Option<usize>, stepccl::Error> {
        let rank = self.communicator.rank();
        let in_place = self.operation == Operation::Broadcast;
        for (i, x) in self.input.floats_mut().iter_mut().enumerate() {
            *x = if in_place && rank != ROOT { -1.0 } else { value(rank, i) };
        }
        self.output.floats_mut().fill(-1.0);
        self.call()?;
        let result = if in_place { self.input.floats() } else { self.output.floats() };
        Ok((0..self.results()).find(|&i| result[i] != self.want(i)))
    }

    /// Elements that the call wrote on this rank.
    fn results(&self) -> usize {
        let (rank, whole) = (self.communicator.rank(), self.output.floats().len());
        match self.operation {
            Operation::Barrier => 0,
            Operation::Reduce | Operation::Gather if rank != ROOT => 0,
            Operation::PingPong if rank > 1 => 0,
            Operation::ReduceScatter | Operation::Scatter => self.part,
            _ => whole,
        }
    }

    /// What element `i` of the result must be.
    fn want(&self, i: usize) -> f32 {
        let (rank, ranks) = (self.communicator.rank(), self.communicator.ranks());
        let sum = |i| (0..ranks).map(|rank| value(rank, i)).sum();
        let (block, at, own) = (i / self.part, i % self.part, rank as usize * self.part);
        match self.operation {
            Operation::AllReduce | Operation::Reduce => sum(i),
            Operation::ReduceScatter => sum(own + i),
            Operation::AllGather | Operation::Gather => value(block as u32, at),
            Operation::AllToAll => value(block as u32, own + at),
            Operation::Scatter => value(ROOT, own + i),
            Operation::SendRecv => value((rank + ranks - 1) % ranks, i),
            Operation::Broadcast | Operation::PingPong | Operation::Barrier => value(ROOT, i),
        }
    }
}

fn value(rank: u32, i: usize) -> f32 {
    (rank as usize + 1 + i % 5) as f32
}

fn send_recv(communicator: &Communicator, input: &Buffer, output: &mut Buffer) -> Outcome {
    let (rank, ranks) = (communicator.rank(), communicator.ranks());
    let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    communicator.group().send(input.floats(), next).recv(output.floats_mut(), before).run()
}
