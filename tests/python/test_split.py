"""torch's split_group: parts of a group, their ranks, and that they do not disturb one another."""

import random
import time

import pytest
import torch
import torch.distributed as dist

pytestmark = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14),
    reason="torch before 2.14 splits no groups of Python backends",
)


def summed(group, rank):
    """The sum of the global ranks of a group, as an all_reduce finds it."""
    value = torch.full((1000,), float(rank))
    dist.all_reduce(value, group=group)
    assert value.eq(value[0]).all()
    return int(value[0])


def in_parts(rank, size, parts):
    import stepccl

    part = dist.split_group(split_ranks=parts)
    mine = next((ranks for ranks in parts if rank in ranks), None)
    assert summed(None, rank) == sum(range(size))
    if mine is None:
        assert part is dist.GroupMember.NON_GROUP_MEMBER
        return
    # The place in the list is the rank.
    assert dist.get_rank(part) == mine.index(rank) and dist.get_world_size(part) == len(mine)
    assert summed(part, rank) == sum(mine)
    first = torch.full((3,), float(rank))
    dist.broadcast(first, group_src=0, group=part)
    assert first.eq(mine[0]).all()
    gathered = [None] * len(mine)
    dist.all_gather_object(gathered, rank, group=part)
    assert gathered == mine
    assert len(stepccl.stats()) == 2
    dist.destroy_process_group(part)
    assert len(stepccl.stats()) == 1


@pytest.mark.parametrize(
    "parts", [[[0, 1], [2, 3]], [[3, 0], [1, 2]], [[0], [1, 2, 3]], [[2, 1]]], ids=str
)
def test_each_part_has_its_ranks_in_order(own_world, parts):
    own_world(4).run(in_parts, parts)


def again(rank, size, seed):
    """Parts of parts, several generations of them, whose ranks come at different times."""
    chance = random.Random(seed)
    for _ in range(3):
        order = chance.sample(range(size), size)
        halves = [order[:2], order[2:]]
        time.sleep(random.random() * 0.02)
        half = dist.split_group(split_ranks=halves)
        mine = next(ranks for ranks in halves if rank in ranks)
        assert summed(half, rank) == sum(mine)
        alone = dist.split_group(half, split_ranks=[[1], [0]])
        assert summed(alone, rank) == rank
        assert summed(half, rank) == sum(mine)
        dist.destroy_process_group(alone)
        dist.destroy_process_group(half)
    dist.barrier()


def test_parts_of_parts_again_and_again(own_world):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    own_world(4).run(again, seed)


def one_part_fails(rank, size):
    """A part that breaks leaves the others, and the whole, as they are."""
    import stepccl

    part = dist.split_group(split_ranks=[[0, 1], [2, 3]])
    if rank == 0:
        dist.all_reduce(torch.ones(3), group=part)
    if rank == 1:
        dist.broadcast(torch.ones(3), group_src=0, group=part)
    if rank < 2:
        dist.barrier(part)
    assert summed(part, rank) == 5
    assert issubclass(stepccl.Error, RuntimeError)


def fails(rank, size):
    import stepccl

    try:
        one_part_fails(rank, size)
    except stepccl.Error as error:
        assert rank < 2 and "rank 0 called all_reduce" in str(error), error
    else:
        assert rank >= 2
    assert summed(None, rank) == sum(range(size))


def test_a_broken_part_breaks_no_other(own_world):
    own_world(4).run(fails)


def wrong(rank, size):
    with pytest.raises(ValueError, match="split_ranks"):
        dist.split_group(split_ranks=[])
    assert summed(None, rank) == sum(range(size))


def test_no_parts_are_refused(world):
    world(2).run(wrong)
