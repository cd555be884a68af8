"""Bad calls are refused with the value and the rule; failures of peers are errors that name them."""

import os
import signal
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import World, say, wait_for


def raised(call, *args, **kwargs):
    """Type names and text of the error that a call raises."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__], str(error)
    raise AssertionError(f"{call} raised nothing")


def bad_arguments(rank, size):
    import stepccl

    def check(kinds, words, call, *args, **kwargs):
        got, text = raised(call, *args, **kwargs)
        for kind in kinds:
            assert kind in got, (got, text)
        for word in words:
            assert word in text, (word, text)

    t, ops = torch.ones, dist.ReduceOp
    for dtype in (torch.int16, torch.uint16):
        check(["TypeError"], [str(dtype), "float32"], dist.all_reduce, torch.zeros(3, dtype=dtype))
    for op in (ops.BAND, ops.BXOR):
        check(["ValueError"], ["of float", "sum, prod, max, min"], dist.all_reduce, t(3), op)
    check(["ValueError"], ["splits", "add up"], dist.all_to_all_single, t(size + 1), t(size + 1),
          [2] + [2] * (size - 1), [2] + [1] * (size - 1))
    check(["ValueError"], ["multiple"], dist.all_to_all_single, t(size + 1), t(size + 1))
    assert stepccl.Error in stepccl.NotSupportedError.__mro__
    # Nothing was started, so the ranks are still in step.
    value = t(3)
    dist.all_reduce(value)
    assert value.eq(size).all()


def test_bad_arguments_are_refused_and_nothing_starts(world):
    world(2).run(bad_arguments)


def lonely(rank, size):
    """Rank 1 does not come."""
    import stepccl

    if rank == 1:
        return None
    options = dist.AllreduceOptions()
    options.timeout = timedelta(seconds=1)
    start = time.monotonic()
    try:
        dist.group.WORLD.allreduce([torch.ones(4)], options).wait()
    except stepccl.TimeoutError as error:
        assert isinstance(error, dist.DistBackendError)
        return time.monotonic() - start, str(error)
    raise AssertionError("no timeout")


def test_a_missing_rank_is_a_timeout_that_says_so(own_world):
    waited, text = own_world(2).run(lonely)[0]
    assert waited > 0.9, waited
    assert "all_reduce" in text and "1" in text, text


def survivors(rank, size, victim):
    import stepccl

    dist.barrier()
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            dist.all_reduce(torch.ones(1 << 16))
    except stepccl.PeerLostError as error:
        return str(error)


@pytest.mark.parametrize("size", [2, 4])
def test_a_dead_peer_is_an_error_that_names_it(own_world, size):
    world = own_world(size)
    victim = size - 1
    world.send(survivors, victim)
    for rank in range(size - 1):
        text = world.answer(rank)
        assert f"rank {victim}" in text, text


def aborted(rank, size):
    import stepccl

    if rank == 0:
        work = dist.all_reduce(torch.ones(4), async_op=True)
        (backend,) = stepccl.live._owners.values()
        backend.abort()
        say("aborted")
        kinds, text = raised(work.wait)
        assert "AbortedError" in kinds, (kinds, text)
        kinds, text = raised(dist.all_reduce, torch.ones(4))
        assert "AbortedError" in kinds, (kinds, text)
        return
    wait_for("aborted")

    def several():
        # What rank 0 gave before the abort may still be used; nothing after it.
        for _ in range(2):
            dist.all_reduce(torch.ones(4))

    kinds, text = raised(several)
    assert "Error" in kinds and "rank 0" in text, (kinds, text)
    assert "TimeoutError" not in kinds, (kinds, text)


def test_abort_ends_waits_here_and_there(own_world):
    own_world(2).run(aborted)


def short_wait(rank, size):
    """A wait that gives up leaves the operation running."""
    import stepccl

    value = torch.ones(4)
    if rank == 1:
        wait_for("gave up")
    work = dist.all_reduce(value, async_op=True)
    if rank == 0:
        kinds, text = raised(work.wait, timedelta(milliseconds=50))
        assert "TimeoutError" in "".join(kinds), (kinds, text)
        say("gave up")
    work.wait()
    assert value.eq(size).all()
    assert issubclass(stepccl.TimeoutError, stepccl.Error)


def test_a_wait_with_a_limit_can_be_repeated(own_world):
    own_world(2).run(short_wait)


def set_up_with(rank, size, folder, sizes):
    """Ranks that do not agree on the number of ranks."""
    import stepccl
    from torch.distributed import FileStore

    store = FileStore(f"{folder}/other")
    kinds, text = raised(
        stepccl._core.Communicator, store, rank, sizes[rank], "other", 20.0, {}
    )
    return kinds, text


def test_another_world_size_is_refused_on_both_sides(world, tmp_path):
    for kinds, text in world(2).run(set_up_with, str(tmp_path), [2, 3]):
        assert "RefusedError" in kinds, (kinds, text)
        assert "2" in text and "3" in text, text


def test_a_world_that_does_not_form_ends(tmp_path):
    """One of two ranks: start-up gives up at its limit and says who is missing."""
    import stepccl
    from torch.distributed import FileStore

    start = time.monotonic()
    with pytest.raises(stepccl.TimeoutError) as caught:
        stepccl._core.Communicator(FileStore(str(tmp_path / "store")), 0, 2, "half", 1.0, {})
    assert time.monotonic() - start > 0.9
    assert "1" in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"rank": 2},
        {"size": 0, "rank": 0},
        {"timeout_s": -1.0},
        {"timeout_s": float("nan")},
        {"config": {"no_such_setting": 1}},
        {"config": {"buffer_size": 1}},
        {"config": {"pipeline_depth": 65}},
    ],
    ids=str,
)
def test_a_communicator_with_bad_arguments_is_refused(tmp_path, arguments):
    import stepccl
    from torch.distributed import FileStore

    good = {"rank": 0, "size": 1, "name": "bad", "timeout_s": 5.0, "config": {}}
    with pytest.raises((ValueError, TypeError)):
        stepccl._core.Communicator(store=FileStore(str(tmp_path / "store")), **{**good, **arguments})


def test_a_test_that_hangs_is_ended():
    """The harness itself: a rank that sleeps is killed and named."""
    from ranks import RankFailed

    world = World(2)
    with pytest.raises(RankFailed, match="did not answer"):
        world.run(sleeper, timeout_s=1)
    assert not world.alive


def sleeper(rank, size):
    time.sleep(600)


def missed(rank, size):
    group = dist.new_group()
    if rank != 0:
        return
    with pytest.raises(RuntimeError, match="Rank 0 timed out in monitoredBarrier"):
        group.monitored_barrier(timedelta(0))
    with pytest.raises(RuntimeError, match="Ranks 1, 2 failed to pass monitoredBarrier"):
        group.monitored_barrier(timedelta(milliseconds=50), True)


def test_a_monitored_barrier_names_who_is_missing(own_world):
    own_world(3).run(missed)
