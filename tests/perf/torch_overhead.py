"""What a call through torch costs beyond the collective itself.

Usage: scripts/python VERSION tests/perf/torch_overhead.py [--quick]

Measures an all_reduce of 8 bytes on one rank and on two, three ways in turn: through torch, through
the extension alone, and through torch with a backend in Python that does nothing, which is torch's
own part. Prints a table in microseconds: medians of the rounds, on rank 0.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

BASE = dist.ProcessGroup
if hasattr(torch._C._distributed_c10d.Backend, "all_gather_single"):
    BASE = torch._C._distributed_c10d.Backend
LIMIT_S = 120


class Nothing(BASE):
    """The floor: what torch takes to call a backend, whatever that does."""

    group_name = "nothing"

    def allreduce(self, tensors, opts=None):
        return None

    def getBackendName(self):
        return "nothing"


def medians(calls, rounds, n):
    """Microseconds of each call: median of the rounds, in which all of them take turns."""
    samples = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            dist.barrier()
            start = time.perf_counter_ns()
            for _ in range(n):
                call()
            samples[name].append((time.perf_counter_ns() - start) / n / 1e3)
    return {name: statistics.median(values) for name, values in samples.items()}


def rank_of(rank, ranks, store, rounds, n, answers):
    import stepccl

    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= ranks:
        os.sched_setaffinity(0, {cores[rank]})
    dist.init_process_group(
        "stepccl",
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=LIMIT_S),
    )
    tensor = torch.ones(2)
    (backend,) = stepccl.live.owners()
    extension, address = backend._communicator, tensor.data_ptr()
    nothing = Nothing(rank, ranks)
    group = dist.group.WORLD
    if BASE is not dist.ProcessGroup:
        # Torch calls backends through a group of its own.
        dist.Backend.register_backend("nothing", lambda *_: nothing, devices=["cpu"])
        nothing = dist.new_group(backend="nothing")
    else:
        dist.distributed_c10d._world.pg_map[nothing] = dist.distributed_c10d._world.pg_map[group]
        dist.distributed_c10d._world.pg_group_ranks[nothing] = {r: r for r in range(ranks)}
    calls = {
        "torch": lambda: dist.all_reduce(tensor),
        "extension": lambda: extension.start(
            "all_reduce", "float32", "sum", 0, 2, [address], [address], tensor, True, 30.0
        ),
        "floor": lambda: dist.all_reduce(tensor, group=nothing),
    }
    medians(calls, 1, n)
    times = medians(calls, rounds, n)
    if rank == 0:
        answers.put(times)
    dist.barrier()
    dist.destroy_process_group()


def measure(ranks, rounds, n):
    """The times of rank 0 in a world of so many ranks."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    with tempfile.TemporaryDirectory(prefix="stepccl-overhead-") as folder:
        store = str(Path(folder) / "store")
        processes = [
            context.Process(target=rank_of, args=(r, ranks, store, rounds, n, answers), daemon=True)
            for r in range(ranks)
        ]
        for process in processes:
            process.start()
        try:
            return answers.get(timeout=LIMIT_S)
        finally:
            for process in processes:
                process.join(10)
                process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few calls: whether it runs, not what it costs")
    quick = parser.parse_args().quick
    rounds, n = (3, 20) if quick else (9, 2000)
    print(f"torch {torch.__version__}, all_reduce of 8 bytes, us a call")
    print(f"{'ranks':>5} {'torch':>8} {'extension':>10} {'floor':>8} {'above extension':>16} {'and floor':>10}")
    for ranks in (1, 2):
        t = measure(ranks, rounds, n)
        above = t["torch"] - t["extension"]
        print(
            f"{ranks:>5} {t['torch']:>8.2f} {t['extension']:>10.2f} {t['floor']:>8.2f} "
            f"{above:>16.2f} {above - t['floor']:>10.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
