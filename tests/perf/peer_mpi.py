"""One rank of a peer's measurement: median microseconds of MPI collectives on host memory.

Started by scripts/bench-peers as `mpirun -n RANKS python peer_mpi.py PEER COLLECTIVES SIZES`; the last two are
separated by commas. Rank 0 prints one JSON object a line: {"peer", "library", "collective", "bytes", "us"}.

A sample is the time of a few calls after a barrier, divided by their number, on the slowest rank;
a figure is the median of the samples after warm-up. Buffers are f32, the result apart from the
input (not in place). `bytes` counts as in nccl-tests: the whole buffer that a rank begins with
(all_reduce, reduce_scatter, all_to_all, broadcast) or ends with (all_gather). Every collective's
result is checked before it is measured.
"""

import json
import statistics
import sys
import time

import numpy as np
from mpi4py import MPI


class Bench:
    """The buffers of one size, and the calls on them."""

    def __init__(self, comm, nbytes):
        self.comm = comm
        self.ranks = comm.size
        # At least one element a rank, and as many for each.
        self.part = max(nbytes // 4 // self.ranks, 1)
        self.input = np.empty(self.part * self.ranks, np.float32)
        self.output = np.empty_like(self.input)

    def calls(self):
        send, recv, part = self.input, self.output, self.part
        # A broadcast has one buffer; only its root's content is an input.
        return {
            "all_reduce": lambda: self.comm.Allreduce(send, recv),
            "all_gather": lambda: self.comm.Allgather(send[:part], recv),
            "reduce_scatter": lambda: self.comm.Reduce_scatter_block(send, recv[:part]),
            "all_to_all": lambda: self.comm.Alltoall(send, recv),
            "broadcast": lambda: self.comm.Bcast(send, 0),
        }

    def check(self, name, call):
        """Runs `call` once on known numbers and stops the job if the result is wrong."""
        n, rank, part = self.ranks, self.comm.rank, self.part
        self.input[:] = rank + 1
        self.output[:] = -1
        call()
        ranks = np.repeat(np.arange(1, n + 1, dtype=np.float32), part)
        got, want = {
            "all_reduce": (self.output, n * (n + 1) / 2),
            "all_gather": (self.output, ranks),
            "reduce_scatter": (self.output[:part], n * (n + 1) / 2),
            "all_to_all": (self.output, ranks),
            "broadcast": (self.input, 1),
        }[name]
        if not np.all(got == want):
            print(f"error: {name} of {self.input.nbytes} bytes is wrong on rank {rank}", file=sys.stderr)
            self.comm.Abort(1)

    def median_us(self, call, nbytes):
        inner, samples = (50, 15) if nbytes <= 1 << 16 else (5, 9) if nbytes <= 1 << 20 else (1, 7)
        for _ in range(2 * inner):
            call()
        times = []
        for _ in range(samples):
            self.comm.Barrier()
            start = time.perf_counter()
            for _ in range(inner):
                call()
            mine = (time.perf_counter() - start) / inner * 1e6
            times.append(self.comm.allreduce(mine, MPI.MAX))
        return statistics.median(times)


def main():
    peer, collectives, sizes = sys.argv[1:4]
    comm = MPI.COMM_WORLD
    library = MPI.Get_library_version().replace("\0", "").splitlines()[0].split(",")[0]
    library = " ".join(library.split())
    for nbytes in map(int, sizes.split(",")):
        bench = Bench(comm, nbytes)
        calls = bench.calls()
        for name in collectives.split(","):
            bench.check(name, calls[name])
            us = bench.median_us(calls[name], nbytes)
            if comm.rank == 0:
                line = {"peer": peer, "library": library, "collective": name, "bytes": nbytes, "us": round(us, 3)}
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
