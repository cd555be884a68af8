"""Worlds of rank processes that run the functions of the tests.

A world keeps its processes for many tests. Nothing waits for ever: when a rank does not answer in
time, or dies, all processes of the world are killed by their id and the test fails.
"""

import faulthandler
import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

START_S = 120
TEST_S = 60

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["torch", "torch.distributed", "torch.multiprocessing"])


def say(key: str) -> None:
    """Tell the other ranks of this world that this one has come so far."""
    _store().set(key, b"")


def wait_for(*keys: str) -> None:
    """Return when other ranks have said all of these."""
    _store().wait(list(keys), timedelta(seconds=TEST_S))


def _store() -> Any:
    import torch.distributed as dist

    return dist.distributed_c10d._get_default_store()


class RankFailed(AssertionError):
    """A rank raised, died or did not answer; the message has its traceback."""


class World:
    """`size` processes with an initialised default group."""

    def __init__(self, size: int, backend: str = "stepccl", timeout_s: float = 30) -> None:
        self.size = size
        self._folder = tempfile.TemporaryDirectory(prefix="stepccl-test-")
        self._store = str(Path(self._folder.name) / "store")
        self._pipes: list[Connection] = []
        self._processes = []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, rank, size, backend, self._store, timeout_s), daemon=True
            )
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        self.alive = True
        self._collect(START_S)

    def run(self, function: Callable[..., Any], *args: Any, timeout_s: float = TEST_S) -> list[Any]:
        """Call `function(rank, size, *args)` on every rank; the results in order of rank."""
        self.send(function, *args)
        return self._collect(timeout_s)

    def send(self, function: Callable[..., Any], *args: Any) -> None:
        """Start the call without waiting."""
        for pipe in self._pipes:
            pipe.send((function, args))

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def answer(self, rank: int, timeout_s: float = TEST_S) -> Any:
        """The answer of one rank to the last call: its result, or RankFailed raised."""
        pipe = self._pipes[rank]
        if not pipe.poll(timeout_s):
            raise RankFailed(f"rank {rank} did not answer within {timeout_s} s")
        try:
            good, value = pipe.recv()
        except EOFError:
            raise RankFailed(f"rank {rank} died") from None
        if not good:
            raise RankFailed(f"rank {rank}:\n{value}")
        return value

    def kill(self) -> None:
        """End every process of this world."""
        self.alive = False
        for process in self._processes:
            if process.is_alive():
                process.kill()
            process.join(10)
        self._folder.cleanup()

    def _collect(self, timeout_s: float) -> list[Any]:
        deadline = time.monotonic() + timeout_s
        results, problems = [], []
        for rank in range(self.size):
            try:
                results.append(self.answer(rank, max(deadline - time.monotonic(), 0.1)))
            except RankFailed as error:
                problems.append(str(error))
        if problems:
            # Ranks that failed in the middle of a test are out of step with the others.
            self.kill()
            raise RankFailed("\n".join(problems))
        return results


def _serve(
    pipe: Connection, rank: int, size: int, backend: str, store: str, timeout_s: float
) -> None:
    faulthandler.enable()
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    try:
        if backend == "stepccl":
            import stepccl  # noqa: F401  (torch before 2.14 finds it by the import alone)
        dist.init_process_group(
            backend,
            init_method=f"file://{store}",
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=timeout_s),
        )
        pipe.send((True, os.getpid()))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
        return
    while True:
        try:
            function, args = pipe.recv()
        except EOFError:
            break
        try:
            pipe.send((True, function(rank, size, *args)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
    # The test is over; a rank that waits for others here would only delay the end.
    os._exit(0)
