"""The sum of sparse tensors equals the sum of what they stand for, and what gloo makes of them."""

import random
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from ranks import say, wait_for
from torch import nn


def sparse(rank, seed, shape, dense_dim, dtype):
    """Random elements of a rank, some of them given twice, maybe none at all."""
    chance = random.Random(f"{seed} {rank}")
    generator = torch.Generator().manual_seed(chance.randrange(1 << 40))
    indexed, dense = shape[: len(shape) - dense_dim], shape[len(shape) - dense_dim :]
    count = chance.choice([0, 1, 7, 300]) if 0 not in shape else 0
    indices = torch.stack([torch.randint(0, max(n, 1), (count,), generator=generator) for n in indexed])
    # Whole numbers, so that sums are exact in any order.
    values = torch.randint(-9, 10, (count, *dense), generator=generator).to(dtype)
    return torch.sparse_coo_tensor(indices, values, shape)


def summed(rank, size, seed, shape, dense_dim, dtype):
    dtype = getattr(torch, dtype)
    inputs = [sparse(r, seed, shape, dense_dim, dtype) for r in range(size)]
    want = sum(tensor.to_dense().to(torch.float64) for tensor in inputs)
    for synchronous in (True, False):
        tensor = inputs[rank].clone()
        work = dist.all_reduce(tensor, async_op=not synchronous)
        if work is not None:
            work.wait()
        assert tensor.layout == torch.sparse_coo and tensor.dtype == dtype
        assert torch.equal(tensor.to_dense().to(torch.float64), want)


SHAPES = [((5,), 0), ((40, 30), 0), ((1000, 8), 1), ((3, 4, 2, 5), 2), ((6, 0), 0)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize(("shape", "dense_dim"), SHAPES, ids=str)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_sum_is_exact(world, size, shape, dense_dim, dtype):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    world(size).run(summed, seed, shape, dense_dim, dtype)


def nothing_at_all(rank, size):
    tensor = torch.sparse_coo_tensor(size=(4, 5))
    dist.all_reduce(tensor)
    assert tensor._nnz() == 0 and tensor.shape == (4, 5)


def test_ranks_without_any_element(world):
    world(2).run(nothing_at_all)


def beside_others(rank, size):
    """Several at once, and other collectives between them."""
    sparse_ones, dense_ones, works = [], [], []
    for i in range(5):
        sparse_ones.append(torch.eye(30 + i).to_sparse() * (rank + i))
        dense_ones.append(torch.full((3,), float(rank)))
        works.append(dist.all_reduce(sparse_ones[-1], async_op=True))
        works.append(dist.all_reduce(dense_ones[-1], async_op=True))
    for work in works if rank else reversed(works):
        work.wait()
    for i in range(5):
        assert torch.equal(sparse_ones[i].to_dense(), torch.eye(30 + i) * sum(r + i for r in range(size)))
        assert dense_ones[i].eq(sum(range(size))).all()
    future = dist.all_reduce(tensor := torch.eye(3).to_sparse(), async_op=True).get_future()
    (got,) = future.wait()
    assert torch.equal(got.to_dense(), torch.eye(3) * size) and torch.equal(tensor.to_dense(), got.to_dense())


def test_in_flight_with_others(world):
    world(3).run(beside_others)


def trained(rank, size):
    torch.manual_seed(2)
    table = nn.EmbeddingBag(50, 8, sparse=True, mode="sum")
    model = nn.parallel.DistributedDataParallel(nn.Sequential(table, nn.Linear(8, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randint(0, 50, (6, 4), generator=generator)).square().mean().backward()
        optimizer.step()
    return [parameter.detach().numpy() for parameter in model.parameters()]


def test_ddp_with_sparse_gradients_equals_gloo(world):
    ours, theirs = world(2).run(trained), world(2, "gloo").run(trained)
    for mine, other, gloo in zip(*ours, theirs[0], strict=True):
        assert (mine == other).all()
        assert abs(mine - gloo).max() <= 1e-6


def refused(rank, size):
    import stepccl

    tensor = torch.eye(4).to_sparse()
    with pytest.raises(stepccl.NotSupportedError, match="added only"):
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
    # torch itself refuses these from 2.14 on.
    with pytest.raises(NotImplementedError, match="(?i)sparse_?csr"):
        dist.all_reduce(torch.eye(4).to_sparse_csr())
    with pytest.raises((TypeError, NotImplementedError), match="(?i)only all_reduce|SparseCPU"):
        dist.broadcast(tensor, 0)
    with pytest.raises(ValueError, match=r"\[4, 4\].*\[4, 5\].*rank 1"):
        dist.all_reduce(torch.eye(4, 4 + rank).to_sparse())
    dist.all_reduce(tensor)
    assert torch.equal(tensor.to_dense(), torch.eye(4) * size)


def test_what_is_refused_leaves_the_group_as_it_was(world):
    world(2).run(refused)


def late(rank, size):
    """A rank that does not come is an error, and not a hang."""
    import stepccl

    if rank == 0:
        options = dist.AllreduceOptions()
        options.timeout = timedelta(seconds=1)
        with pytest.raises(stepccl.TimeoutError, match="waiting for rank 1"):
            dist.group.WORLD.allreduce([torch.eye(3).to_sparse()], options)
        say("over")
    else:
        wait_for("over")


def test_a_missing_rank_is_a_timeout(own_world):
    own_world(2).run(late)
