"""Collectives whose blocks differ in length, and receives from any source."""

import pytest
import torch
import torch.distributed as dist
from ranks import say, wait_for
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


def refused(call):
    """Class and text of the error of a call, or of the barrier after it: who only sends may be done."""
    import stepccl

    with pytest.raises(stepccl.Error) as caught:
        call()
        dist.barrier()
    return type(caught.value).__name__, str(caught.value)


def at_root(rank, size, what, counts, own, root, asynchronous):
    """The root has a list of `counts` elements, each rank a tensor of `own` ones."""
    listed = [torch.ones(count) for count in counts] if rank == root else None
    mine = torch.ones(own[rank])

    def call():
        work = getattr(dist, what)(mine, listed, root, async_op=asynchronous)
        if asynchronous:
            work.wait()

    name, text = refused(call)
    # The root does nothing more until all others have their error.
    say(f"refused {rank}")
    wait_for(*(f"refused {r}" for r in range(size)))
    with pytest.raises(RuntimeError, match="earlier error"):
        dist.barrier()
    return name, text


@pytest.mark.parametrize("scale", [1, 100_000])
@pytest.mark.parametrize("what", ["gather", "scatter"])
def test_an_uneven_list_of_the_root_is_refused_on_every_rank(own_world, what, scale):
    counts, root, asynchronous = [3 * scale, 3 * scale, 4 * scale], 1, scale > 1
    told = own_world(3).run(at_root, what, counts, [3 * scale] * 3, root, asynchronous)
    for rank, (name, text) in enumerate(told):
        assert f"{what}: tensors that differ in length" in text, text
        if rank == root:
            assert name == "NotSupportedError" and str(counts) in text, (name, text)
        else:
            assert name == "PeerLostError" and "lost rank 1" in text, (name, text)


@pytest.mark.parametrize("scale", [1, 100_000])
@pytest.mark.parametrize("what", ["gather", "scatter"])
def test_uneven_blocks_of_one_rank_are_refused_on_every_rank(own_world, what, scale):
    """As well, the others may find out first that they differ from one another."""
    counts, root, asynchronous = [count * scale for count in (1, 2, 3)], 1, scale > 1
    told = own_world(3).run(at_root, what, counts, counts, root, asynchronous)
    assert told[root][0] == "NotSupportedError" and str(counts) in told[root][1], told[root]
    for name, text in told[:root] + told[root + 1 :]:
        differ = f"rank 0 called {what} of {counts[0]} float with root 1" in text
        assert differ or f"{what}: tensors that differ in length" in text, (name, text)
