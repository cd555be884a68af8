"""Copy rate of this machine: `python copy_rate.py PROCESSES BYTES` prints GB/s of each process at once.

A floor beside the peers: no collective can move a byte of a buffer faster than a core copies it.
"""

import json
import multiprocessing
import statistics
import sys
import time

import numpy as np


def rate(nbytes, barrier, answers):
    source = np.ones(nbytes // 4, np.float32)
    target = np.empty_like(source)
    calls = max(1, (32 << 20) // nbytes)
    np.copyto(target, source)
    times = []
    for _ in range(9):
        barrier.wait(60)
        start = time.perf_counter()
        for _ in range(calls):
            np.copyto(target, source)
        times.append((time.perf_counter() - start) / calls)
    answers.put(nbytes / statistics.median(times) / 1e9)


def main():
    processes, nbytes = map(int, sys.argv[1:3])
    barrier, answers = multiprocessing.Barrier(processes), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=rate, args=(nbytes, barrier, answers)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    print(json.dumps([round(answers.get(timeout=120), 2) for _ in workers]))
    for worker in workers:
        worker.join(60)


if __name__ == "__main__":
    main()
