"""Asynchronous handles: order, futures, several at once, several groups."""

import random
import time

import pytest
import torch
import torch.distributed as dist
from ranks import say, wait_for

NEW = hasattr(torch._C._distributed_c10d.Backend, "all_gather_single")


def many_in_order(rank, size):
    """Each operation reads what the one before it wrote."""
    value = torch.ones(1000)
    works = [dist.all_reduce(value, async_op=True) for _ in range(10)]
    for work in works:
        work.wait()
    assert value.eq(float(size**10)).all()
    mixed = torch.full((7,), rank + 1.0)
    first = dist.broadcast(mixed, 1, async_op=True)
    dist.all_reduce(mixed)  # on the calling thread, after the broadcast
    first.wait()
    assert mixed.eq(2.0 * size).all()


def test_operations_run_in_the_order_of_the_calls(world):
    world(2).run(many_in_order)


def waits_in_any_order(rank, size):
    values = [torch.full((5000,), float(i)) for i in range(20)]
    works = [dist.all_reduce(v, async_op=True) for v in values]
    order = list(range(20))
    random.Random(rank).shuffle(order)
    for i in order:
        works[i].wait()
        assert values[i].eq(float(i * size)).all()


def test_waits_in_another_order_on_each_rank(world):
    world(4).run(waits_in_any_order)


def future(rank, size):
    value = torch.ones(100_000)
    got = dist.all_reduce(value, async_op=True).get_future()
    doubled = got.then(lambda f: f.value()[0] * 2)
    assert doubled.wait().eq(2.0 * size).all()
    again = dist.all_reduce(torch.ones(3), async_op=True)
    again.wait()
    assert again.get_future().wait()[0].eq(float(size)).all()


def test_future_gives_the_tensors(world):
    world(2).run(future)


def two_groups(rank, size):
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine = halves[rank // 2]
    everyone, half = torch.ones(10), torch.ones(10)
    works = [dist.all_reduce(everyone, async_op=True), dist.all_reduce(half, group=mine, async_op=True)]
    for work in reversed(works):
        work.wait()
    assert everyone.eq(4).all() and half.eq(2).all()
    import stepccl

    assert len(stepccl.stats()) == 2
    dist.destroy_process_group(mine)
    assert len(stepccl.stats()) == 1


def test_several_groups(own_world):
    own_world(4).run(two_groups)


def functional(rank, size):
    import torch.distributed._functional_collectives as fc

    group = dist.group.WORLD
    ones = torch.ones(8)
    assert fc.all_reduce(ones, "sum", group).eq(size).all()
    assert fc.all_gather_tensor(ones * rank, 0, group).sum() == 8 * sum(range(size))
    assert fc.reduce_scatter_tensor(torch.ones(8 * size), "sum", 0, group).eq(size).all()
    assert fc.all_to_all_single(ones, None, None, group).eq(1).all()
    pair = fc.all_gather_into_tensor_coalesced([ones, torch.ones(4)], group)
    assert [p.numel() for p in pair] == [8 * size, 4 * size]
    pair = fc.all_reduce_coalesced([ones, torch.ones(4)], "sum", group)
    assert all(p.eq(size).all() for p in pair)
    pair = fc.reduce_scatter_tensor_coalesced([torch.ones(8), torch.ones(4)], "sum", [0, 0], group)
    assert all(p.eq(size).all() for p in pair)


def test_functional_collectives(world):
    world(2).run(functional)


def coalesced(rank, size):
    from torch.distributed.distributed_c10d import _coalescing_manager

    a, b = torch.ones(4), torch.ones(9)
    with _coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        dist.all_reduce(a)
        dist.all_reduce(b)
    manager.wait()
    assert a.eq(size).all() and b.eq(size).all()


@pytest.mark.skipif(not NEW, reason="torch before 2.14 has no coalescing for Python groups")
def test_coalescing_manager(world):
    world(2).run(coalesced)


def gil(rank, size):
    """While one thread waits for a slow peer, another one of the process runs."""
    import threading

    def count():
        for _ in range(200):
            time.sleep(0.001)
        say("counted")

    if rank == 1:
        threading.Thread(target=count).start()
    else:
        # Never said where the wait of the other rank keeps its threads from running.
        wait_for("counted")
    dist.all_reduce(torch.ones(4))


def test_a_wait_releases_the_gil(own_world):
    own_world(2).run(gil)


def traced(rank, size):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(torch.ones(4))
    return [event.key for event in profile.key_averages()]


def test_profiler_shows_the_operation(world):
    assert all("stepccl:all_reduce" in keys for keys in world(2).run(traced))


def counters_of_a_hang(rank, size):
    """Counters are wanted most when an operation does not end."""
    import stepccl

    if rank == 0:
        work = dist.all_reduce(torch.ones(4), async_op=True)
        assert stepccl.stats()
        say("has counters")
        work.wait()
    else:
        wait_for("has counters")
        dist.all_reduce(torch.ones(4))


def test_stats_do_not_wait_for_an_operation(own_world):
    own_world(2).run(counters_of_a_hang)
