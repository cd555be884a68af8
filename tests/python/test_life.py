"""Forks, exec, signals, ends with work in flight: all end soon, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

LIMIT_S = 150
# What a rank does after it has a group of two. Rank 1 gets the same unless it says otherwise.
START = """
import os, signal, sys, threading, time
import torch, torch.distributed as dist, stepccl
from datetime import timedelta
rank = int(os.environ["RANK"])
torch.set_num_threads(1)
dist.init_process_group("stepccl", init_method="file://" + os.environ["STORE"], rank=rank, world_size=2,
                        timeout=timedelta(seconds=60))
store = dist.distributed_c10d._get_default_store()
value = torch.ones(4)
dist.all_reduce(value)

def say(*words):
    print(*words, flush=True)

def raised(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        return error
    raise AssertionError(f"{call} raised nothing")
"""

FORK = """
if rank == 0:
    work = dist.all_reduce(value, async_op=True)
    child = os.fork()
    if child == 0:
        signal.alarm(50)
        for call in (lambda: dist.all_reduce(torch.ones(4)), dist.barrier, work.wait):
            error = raised(call)
            assert isinstance(error, stepccl.ForkedError), repr(error)
            assert str(os.getppid()) in str(error) and str(os.getpid()) in str(error), error
        assert stepccl.stats() == {}
        dist.destroy_process_group()
        # The parent is not disturbed.
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
else:
    time.sleep(0.5)
    work = dist.all_reduce(value, async_op=True)
work.wait()
assert value.eq(4).all(), value
dist.all_reduce(value)
dist.destroy_process_group()
say("good")
"""

FORKS = """
# While operations are under way on several threads, at any moment; children end in all ways.
group = dist.new_group([0, 1])
for turn in range(12):
    long = torch.ones(70_000)
    if rank == 0:
        work = dist.all_reduce(value.fill_(1), async_op=True)
        total = work.get_future().then(lambda future: future.value()[0].sum())
        thread = threading.Thread(target=dist.all_reduce, args=(long,), kwargs={"group": group})
        thread.start()
        time.sleep(0.001 * (turn % 3))
        child = os.fork()
        if child == 0:
            signal.alarm(50)
            if turn % 4 == 0:
                kept = raised(dist.barrier)
            if turn % 4 == 1:
                dist.destroy_process_group()
            if turn % 4 == 2:
                os._exit(0)
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, (turn, status)
        store.set(str(turn), b"")
        work.wait()
        assert total.wait() == 8
        thread.join()
    else:
        store.wait([str(turn)])
        dist.all_reduce(value.fill_(1))
        dist.all_reduce(long, group=group)
    assert long.eq(2).all()
dist.destroy_process_group()
say("good")
"""

LOADER = """
class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return torch.full((2,), float(index))

loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="fork")
for batch in loader:
    dist.all_reduce(batch)
dist.barrier()
dist.destroy_process_group()
say("good")
"""

EXEC = """
if rank == 0:
    dist.barrier()
    os.execv(sys.executable, [sys.executable, "-c", "import os; print('good', len(os.listdir('/proc/self/fd')))"])
dist.barrier()
error = raised(dist.all_reduce, torch.ones(1 << 20))
assert isinstance(error, stepccl.PeerLostError) and "rank 0" in str(error), repr(error)
say("good")
"""

IN_FLIGHT = """
# Rank 1 leaves without a word; rank 0 in the middle of what nobody answers.
if rank == 0:
    works = [dist.all_reduce(torch.ones(1 << 18), async_op=True) for _ in range(3)]
    works.append(dist.irecv(torch.empty(5), 1))
    works[0].get_future().then(lambda f: None)
say("good")
"""

TWICE = """
dist.destroy_process_group()
error = raised(dist.destroy_process_group)
assert not isinstance(error, SystemError), repr(error)
# Another file: torch removes the first one when the last rank lets go of it, maybe only now.
dist.init_process_group("stepccl", init_method="file://" + os.environ["STORE"] + "2", rank=rank, world_size=2)
backend, = stepccl.live.owners()
backend.shutdown()
backend.shutdown()
backend.abort()
error = raised(dist.all_reduce, torch.ones(4))
assert isinstance(error, stepccl.AbortedError), repr(error)
dist.destroy_process_group()
assert stepccl.stats() == {}
say("good")
"""

ABORT = """
if rank == 1:
    store.wait(["aborted"])
    # What rank 0 gave before may still be used, nothing after it.
    error = raised(lambda: [dist.all_reduce(torch.ones(4)) for _ in range(2)])
    assert isinstance(error, stepccl.Error) and "rank 0" in str(error), repr(error)
else:
    backend, = stepccl.live.owners()
    threading.Timer(0.3, lambda: (backend.abort(), store.set("aborted", b""))).start()
    error = raised(dist.all_reduce, torch.ones(4))
    assert isinstance(error, stepccl.AbortedError), repr(error)
say("good")
"""

WAITS = """
say("waits")
if rank == 0:
    dist.all_reduce(torch.ones(4))
else:
    error = raised(dist.recv, torch.empty(4), 0)
    assert isinstance(error, stepccl.PeerLostError) and "rank 0" in str(error), repr(error)
    say("good")
"""

HANDLED = """
def leave(*_):
    say("handled")
    sys.exit(3)

signal.signal(signal.SIGTERM, leave)
say("waits")
if rank == 0:
    work = dist.all_reduce(torch.ones(4), async_op=True)
    while not work.is_completed():
        time.sleep(0.01)
else:
    error = raised(dist.recv, torch.empty(4), 0)
    assert isinstance(error, stepccl.PeerLostError), repr(error)
    say("good")
"""


def left_over():
    """Names that a process could leave behind."""
    return {str(path) for folder in ("/dev/shm", "/tmp") for path in Path(folder).glob("*stepccl*")} | {
        str(path) for path in Path("/tmp").glob(".tmp??????")
    }


class Ranks:
    """Two processes that run one script."""

    def __init__(self, folder, script):
        # Short: sockets of torch's data loaders are made in it, whose names have 107 bytes at most.
        self.temporary = Path(tempfile.mkdtemp())
        environment = dict(os.environ, STORE=str(folder / "store"), TMPDIR=str(self.temporary))
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", START + script],
                env=dict(environment, RANK=str(rank)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]

    def end(self):
        """Output and exit code of each rank, within the limit; then that nothing is left."""
        deadline = time.monotonic() + LIMIT_S
        results = []
        try:
            for process in self.processes:
                out, err = process.communicate(timeout=max(deadline - time.monotonic(), 1))
                results.append((process.returncode, out, err))
        finally:
            for process in self.processes:
                process.kill()
                process.wait()
        assert list(self.temporary.iterdir()) == []
        self.temporary.rmdir()
        return results


@pytest.fixture
def ranks(tmp_path):
    before = left_over()
    made = []

    def get(script):
        made.append(Ranks(tmp_path, script))
        return made[-1]

    yield get
    for world in made:
        for process in world.processes:
            assert process.poll() is not None
            assert not Path(f"/proc/{process.pid}/fd").exists()
    # Other programs of the machine make and remove such names too; ours would stay.
    deadline = time.monotonic() + 2
    while left_over() - before and time.monotonic() < deadline:
        time.sleep(0.1)
    own = [name for name in left_over() - before if "stepccl" in name and name.startswith("/dev/shm")]
    assert not own, own


@pytest.mark.parametrize(
    "script",
    [FORK, FORKS, LOADER, EXEC, IN_FLIGHT, TWICE, ABORT],
    ids=["fork", "forks", "loader", "exec", "in flight", "twice", "abort"],
)
def test_both_ranks_end_well(ranks, script):
    for code, out, err in ranks(script).end():
        assert code == 0 and "good" in out, (code, out, err)


def wait_for_line(process, line):
    assert process.stdout.readline().strip() == line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_a_signal_ends_a_wait(ranks, number):
    world = ranks(WAITS)
    for process in world.processes:
        wait_for_line(process, "waits")
    time.sleep(0.5)
    world.processes[0].send_signal(number)
    (code, out, err), (other, out_other, err_other) = world.end()
    assert code == -number, (code, out, err)
    assert other == 0 and "good" in out_other, (other, out_other, err_other)


def test_a_handler_of_the_program_runs(ranks):
    world = ranks(HANDLED)
    for process in world.processes:
        wait_for_line(process, "waits")
    world.processes[0].send_signal(signal.SIGTERM)
    (code, out, err), (other, out_other, err_other) = world.end()
    assert code == 3 and "handled" in out, (code, out, err)
    assert other == 0 and "good" in out_other, (other, out_other, err_other)


# Rank 0 waits in one of many ways, gets a Ctrl-C, and goes on as if nothing had been.
INTERRUPTED = """
calls = {
    "short": lambda: dist.all_reduce(value),
    "long": lambda: dist.all_reduce(big),
    "barrier": lambda: dist.barrier(),
    "started": lambda: dist.all_reduce(value, async_op=True).wait(),
    "uneven": lambda: dist.all_gather(uneven, torch.ones(3 + rank)),
    "message": lambda: dist.recv(value, 1) if rank == 0 else dist.send(value.fill_(2), 0),
    "several": lambda: dist.all_reduce_coalesced([value, other]),
}
big, other = torch.ones(3_000_000), torch.ones(5)
uneven = [torch.zeros(3), torch.zeros(4)]

def interrupt():
    # The record shows what is waited for.
    while " running " not in stepccl.dump(1):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

for name, call in calls.items():
    value.fill_(1), big.fill_(1), other.fill_(1)
    dist.barrier()
    if rank == 0:
        threading.Thread(target=interrupt).start()
        try:
            call()
        except KeyboardInterrupt:
            store.set(name, b"")
        else:
            raise AssertionError(f"{name} was not interrupted")
    else:
        store.wait([name])
        call()
    # Behind the one that was interrupted, which goes on.
    after = torch.ones(3)
    dist.all_reduce(after)
    assert after.eq(2).all()
    if name == "message" and rank == 0:
        # In an order of its own: the next message comes after it.
        dist.recv(after, 1)
    elif name == "message":
        dist.send(after, 0)
    assert rank == 0 or name != "started" or value.eq(2).all()
    done = {"short": [value], "long": [big], "started": [value], "message": [value], "several": [value, other],
            "uneven": [t + 1 for t in uneven], "barrier": []}[name]
    assert all(t.eq(2).all() for t in done), (name, done)
dist.destroy_process_group()
say("good")
"""


def test_ctrl_c_ends_a_wait_and_the_operation_goes_on(ranks):
    world = ranks(INTERRUPTED)
    for code, out, err in world.end():
        assert code == 0 and "good" in out, (code, out, err)


def test_ctrl_c_ends_the_program(ranks):
    # Nobody handles it: the program ends as if there were no group, and the other rank hears of it.
    world = ranks(WAITS)
    for process in world.processes:
        wait_for_line(process, "waits")
    time.sleep(0.3)
    world.processes[0].send_signal(signal.SIGINT)
    (code, out, err), (other, out_other, err_other) = world.end()
    assert code == -signal.SIGINT and "KeyboardInterrupt" in err, (code, out, err)
    assert other == 0 and "good" in out_other, (other, out_other, err_other)


ALONE = """
import sys, torch.distributed as dist, stepccl
try:
    print("waits", flush=True)
    stepccl._core.Communicator(dist.FileStore(sys.argv[1]), 0, 2, "half", 100.0, {})
except KeyboardInterrupt:
    print("good")
"""


def test_ctrl_c_ends_a_start_up(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", ALONE, tmp_path / "store"], stdout=subprocess.PIPE, text=True
    )
    try:
        wait_for_line(process, "waits")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=50)
    finally:
        process.kill()
    assert out.strip() == "good"
