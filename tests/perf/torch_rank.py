"""One rank of torch.distributed, measured from Python as mpi_rank.c measures an MPI from C.

That file says what the lines of the driver mean and what a sample is. BENCH_BACKEND is `stepccl`
or `gloo`, BENCH_STORE a file where ranks meet, BENCH_RANK and BENCH_RANKS what they say. A call is
torch's own, with its tensors made before: what an operation costs a user of torch.
"""

import os
import socket
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

ROOT = 0


class Job:
    """The tensors of one size, and the calls on them."""

    def __init__(self, rank, ranks, nbytes):
        self.rank, self.ranks = rank, ranks
        self.part = max(nbytes // 4 // ranks, 1)
        self.input = torch.zeros(self.part * ranks)
        self.output = torch.zeros(self.part * ranks)
        self.input_part, self.output_part = self.input[: self.part], self.output[: self.part]
        self.input_parts, self.output_parts = list(self.input.chunk(ranks)), list(self.output.chunk(ranks))

    def call(self, name):
        """The call of an operation, and the tensor that has its result on this rank, or None."""
        at_root = self.rank == ROOT
        i, o, ip, op = self.input, self.output, self.input_part, self.output_part
        if name == "all_reduce":  # torch has it in place only
            return lambda: dist.all_reduce(o), o
        if name == "all_gather":
            return lambda: dist.all_gather_into_tensor(o, ip), o
        if name == "reduce_scatter":
            return lambda: dist.reduce_scatter_tensor(op, i), op
        if name == "all_to_all":
            return lambda: dist.all_to_all_single(o, i), o
        if name == "broadcast":
            return lambda: dist.broadcast(o, ROOT), o
        if name == "reduce":
            return lambda: dist.reduce(o, ROOT), o if at_root else None
        if name == "gather":
            parts = self.output_parts if at_root else None
            return lambda: dist.gather(ip, parts, ROOT), o if at_root else None
        if name == "scatter":
            parts = self.input_parts if at_root else None
            return lambda: dist.scatter(op, parts, ROOT), op
        if name == "sendrecv":
            return self.send_recv, o
        if name == "ping_pong":
            return self.ping_pong, o if self.rank < 2 else None
        if name == "barrier":
            return dist.barrier, None
        raise ValueError(f"no operation {name}")

    def send_recv(self):
        after, before = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        operations = [dist.P2POp(dist.isend, self.input, after), dist.P2POp(dist.irecv, self.output, before)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()

    def ping_pong(self):
        if self.rank == 0:
            dist.send(self.input, 1)
            dist.recv(self.output, 1)
        elif self.rank == 1:
            dist.recv(self.output, 0)
            dist.send(self.output, 0)

    def values(self, rank):
        return torch.arange(self.input.numel()) % 5 + float(rank + 1)

    def want(self, name):
        """What the result of `check` must be."""
        everyone = [self.values(rank) for rank in range(self.ranks)]
        own = slice(self.rank * self.part, (self.rank + 1) * self.part)
        if name in ("all_reduce", "reduce"):
            return sum(everyone)
        if name == "reduce_scatter":
            return sum(everyone)[own]
        if name in ("all_gather", "gather"):
            return torch.cat([values[: self.part] for values in everyone])
        if name == "all_to_all":
            return torch.cat([values[own] for values in everyone])
        if name == "scatter":
            return everyone[ROOT][own]
        if name == "sendrecv":
            return everyone[(self.rank - 1) % self.ranks]
        return everyone[ROOT]

    def check(self, name):
        """The first wrong element of one call on known numbers, or None."""
        call, result = self.call(name)
        self.input.copy_(self.values(self.rank))
        in_place = name in ("all_reduce", "reduce") or (name == "broadcast" and self.rank == ROOT)
        self.output.copy_(self.input if in_place else torch.full_like(self.output, -1.0))
        call()
        if result is None:
            return None
        wrong = torch.nonzero(result != self.want(name))
        return int(wrong[0]) if len(wrong) else None


def measure(job, name, warmup, calls, samples):
    call, _ = job.call(name)
    for _ in range(warmup):
        call()
    answer = []
    for _ in range(samples):
        dist.barrier()
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        answer.append(f"{(time.perf_counter_ns() - start) / calls:.1f}")
    return " ".join(answer)


def obey(rank, ranks, line):
    verb, name, nbytes, *numbers = line.split()
    job = Job(rank, ranks, int(nbytes))
    if verb == "check":
        wrong = job.check(name)
        return "ok" if wrong is None else f"error {name} of {nbytes} bytes is wrong on rank {rank} at element {wrong}"
    if verb == "measure":
        return "ok " + measure(job, name, *map(int, numbers))
    return f"error cannot do: {line.strip()}"


def bind_to_core(rank, ranks):
    """A core of its own for each rank, where there are enough; all libraries are placed alike."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= ranks:
        os.sched_setaffinity(0, {cores[rank]})


def main():
    rank, ranks = int(os.environ["BENCH_RANK"]), int(os.environ["BENCH_RANKS"])
    backend = os.environ["BENCH_BACKEND"]
    bind_to_core(rank, ranks)
    torch.set_num_threads(1)
    if backend == "stepccl":
        import stepccl  # noqa: F401
    store = dist.FileStore(os.environ["BENCH_STORE"], ranks)
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=120))
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(os.environ["BENCH_SOCKET"])
    with driver.makefile("rw") as lines:
        print("hello", rank, f"{backend}, torch {torch.__version__}", file=lines, flush=True)
        for line in lines:
            if line.strip() == "quit":
                break
            try:
                answer = obey(rank, ranks, line)
            except Exception as error:  # the driver decides what becomes of the world
                answer = "error " + " ".join(str(error).split())
            print(answer, file=lines, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
