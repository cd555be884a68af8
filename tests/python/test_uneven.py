"""Collectives whose blocks differ in length, and receives from any source."""

import pytest
import torch
import torch.distributed as dist
from reference import block


def lists(rank, size, counts):
    mine = block(rank, 0, counts[rank], "float32")
    outputs = [torch.empty(count) for count in counts]
    dist.all_gather(outputs, mine)
    for r in range(size):
        assert torch.equal(outputs[r], block(r, 0, counts[r], "float32"))
    output = torch.empty(counts[rank])
    dist.reduce_scatter(output, [torch.full((count,), rank + 1.0) for count in counts])
    assert output.eq(size * (size + 1) / 2).all()
    # Rank r sends r + i + counts[i] elements to rank i.
    inputs = [block(rank, i, rank + i + counts[i], "float32") for i in range(size)]
    outputs = [torch.empty(r + rank + counts[rank]) for r in range(size)]
    dist.all_to_all(outputs, inputs)
    for r in range(size):
        assert torch.equal(outputs[r], block(r, rank, r + rank + counts[rank], "float32"))
    whole = torch.empty(sum(len(o) for o in outputs))
    dist.all_to_all_single(whole, torch.cat(inputs), [len(o) for o in outputs], [len(i) for i in inputs])
    assert torch.equal(whole, torch.cat(outputs))


@pytest.mark.parametrize("counts", [[3, 0], [1, 7, 70_001]], ids=str)
def test_uneven_blocks(world, counts):
    world(len(counts)).run(lists, counts)


def coalesced_lists(rank, size):
    """The outer list is by rank, the inner ones by tensor: not to be taken for the other way."""
    outputs = [[torch.empty(4), torch.empty(4)] for _ in range(size)]
    work = dist.group.WORLD
    inputs = [torch.full((4,), 10.0 * rank), torch.full((4,), 10.0 * rank + 1)]
    dist.all_gather_coalesced(outputs, inputs, group=work)
    for r in range(size):
        assert outputs[r][0].eq(10.0 * r).all() and outputs[r][1].eq(10.0 * r + 1).all()


def test_coalesced_all_gather_of_lists(world):
    world(2).run(coalesced_lists)


def any_source(rank, size):
    if rank == 0:
        got = [torch.empty(3) for _ in range(size - 1)]
        for tensor in got:
            dist.irecv(tensor, tag=5).wait()
        assert sorted(tensor[0].item() for tensor in got) == list(range(1, size))
    else:
        dist.send(torch.full((3,), float(rank)), 0, tag=5)


def test_receive_from_any_source(world):
    world(3).run(any_source)


def to_one_rank(rank, size):
    """gather and scatter take blocks of one length, as gloo; the root says so, and the others hear of it."""
    import stepccl

    with pytest.raises(stepccl.NotSupportedError, match=r"gather: tensors of \[3, 4\] elements.*3;"):
        dist.gather(torch.ones(3), [torch.empty(3), torch.empty(4)], dst=rank)
    with pytest.raises(stepccl.NotSupportedError, match=r"scatter: tensors of \[3, 4\] elements.*3;"):
        dist.scatter(torch.ones(3), [torch.empty(3), torch.empty(4)], src=rank)
    dist.barrier()
    if rank == 0:
        with pytest.raises(stepccl.NotSupportedError, match="gather"):
            dist.gather(torch.ones(3), [torch.empty(3), torch.empty(4)])
    else:
        dist.gather(torch.ones(4))
    with pytest.raises(stepccl.Error, match="rank 0 called barrier; rank 1 called gather of 4"):
        dist.barrier()


def test_uneven_blocks_of_one_rank_are_refused(own_world):
    own_world(2).run(to_one_rank)
