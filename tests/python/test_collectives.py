"""Each collective against a float64 reference, on fresh random data."""

import random

import pytest
import torch
import torch.distributed as dist
from reference import COUNTS, DTYPES, OPS, assert_close, block, reduced

SIZES = [2, 4]
SEED = random.SystemRandom().randrange(1 << 30)


def op_of(name):
    return getattr(dist.ReduceOp, name.upper())


def all_reduce(rank, size, dtype, seed):
    for op in OPS:
        for count in COUNTS:
            mine = block(rank, 0, count, dtype, seed)
            dist.all_reduce(mine, op_of(op))
            want = reduced([block(r, 0, count, dtype, seed) for r in range(size)], op)
            assert_close(mine, want, f"{op} of {count}")


def reduce(rank, size, dtype, seed):
    for root in range(size):
        for op in OPS:
            mine = block(rank, 0, 999, dtype, seed)
            dist.reduce(mine, root, op_of(op))
            if rank == root:
                parts = [block(r, 0, 999, dtype, seed) for r in range(size)]
                assert_close(mine, reduced(parts, op), f"{op} at {root}")


def broadcast(rank, size, dtype, seed):
    for root in range(size):
        for count in COUNTS:
            mine = block(rank, root, count, dtype, seed)
            dist.broadcast(mine, root)
            assert torch.equal(mine, block(root, root, count, dtype, seed))


def all_gather(rank, size, dtype, seed):
    for count in COUNTS:
        mine = block(rank, 0, count, dtype, seed)
        want = [block(r, 0, count, dtype, seed) for r in range(size)]
        outputs = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(outputs, mine)
        assert all(torch.equal(a, b) for a, b in zip(outputs, want, strict=True))
        whole = torch.empty(count * size, dtype=mine.dtype)
        dist.all_gather_into_tensor(whole, mine)
        assert torch.equal(whole, torch.cat(want))


def reduce_scatter(rank, size, dtype, seed):
    for op in OPS:
        for count in COUNTS:
            parts = [block(rank, i, count, dtype, seed) for i in range(size)]
            want = reduced([block(r, rank, count, dtype, seed) for r in range(size)], op)
            output = torch.empty(count, dtype=parts[0].dtype)
            dist.reduce_scatter(output, parts, op_of(op))
            assert_close(output, want, f"list, {op} of {count}")
            dist.reduce_scatter_tensor(output.zero_(), torch.cat(parts), op_of(op))
            assert_close(output, want, f"tensor, {op} of {count}")


def all_to_all(rank, size, dtype, seed):
    for count in COUNTS:
        parts = [block(rank, i, count, dtype, seed) for i in range(size)]
        want = [block(r, rank, count, dtype, seed) for r in range(size)]
        outputs = [torch.empty_like(part) for part in parts]
        dist.all_to_all(outputs, parts)
        assert all(torch.equal(a, b) for a, b in zip(outputs, want, strict=True))
        whole = torch.empty(count * size, dtype=parts[0].dtype)
        dist.all_to_all_single(whole, torch.cat(parts))
        assert torch.equal(whole, torch.cat(want))
        splits = [count] * size
        dist.all_to_all_single(whole.zero_(), torch.cat(parts), splits, splits)
        assert torch.equal(whole, torch.cat(want))


def gather(rank, size, dtype, seed):
    for root in range(size):
        mine = block(rank, 0, 1000, dtype, seed)
        outputs = [torch.empty_like(mine) for _ in range(size)] if rank == root else None
        dist.gather(mine, outputs, dst=root)
        if rank == root:
            for r in range(size):
                assert torch.equal(outputs[r], block(r, 0, 1000, dtype, seed))


def scatter(rank, size, dtype, seed):
    for root in range(size):
        parts = [block(root, i, 1000, dtype, seed) for i in range(size)]
        output = torch.empty_like(parts[0])
        dist.scatter(output, parts if rank == root else None, src=root)
        assert torch.equal(output, parts[rank])


def send_recv(rank, size, dtype, seed):
    """Each rank sends round the ring, even ranks first; then all at once."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for tag, count in enumerate(COUNTS):
        mine, got = block(rank, 0, count, dtype, seed), torch.empty(count, dtype=getattr(torch, dtype))
        if rank % 2 == 0:
            dist.send(mine, right, tag=tag)
            dist.recv(got, left, tag=tag)
        else:
            dist.recv(got, left, tag=tag)
            dist.send(mine, right, tag=tag)
        assert torch.equal(got, block(left, 0, count, dtype, seed))
        ops = [dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, got.zero_(), left)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert torch.equal(got, block(left, 0, count, dtype, seed))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "collective",
    [all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, send_recv],
    ids=lambda f: f.__name__,
)
def test_equals_reference(world, collective, dtype, size):
    world(size).run(collective, dtype, SEED)


def large(rank, size, seed):
    count = 20 * (1 << 20) // 4 + 1
    mine = block(rank, 0, count, "float32", seed)
    dist.all_reduce(mine)
    assert_close(mine, reduced([block(r, 0, count, "float32", seed) for r in range(size)], "sum"), "")
    import stepccl

    (counters,) = stepccl.stats().values()
    return counters["staging_bytes"]


@pytest.mark.parametrize("size", SIZES)
def test_message_larger_than_the_staging(world, size):
    staging = world(size).run(large, SEED)
    assert all(0 < s <= 8 << 20 for s in staging), staging


def strided(rank, size):
    """Tensors whose elements do not lie in a row, on either side."""
    base = torch.zeros(6, 8)
    column = base[:, 3]
    column.fill_(rank + 1.0)
    dist.all_reduce(column)
    assert column.tolist() == [size * (size + 1) / 2] * 6
    assert base.sum() == column.sum()

    turned = torch.arange(6.0).reshape(2, 3).t() + 100 * rank
    outputs = [torch.empty(2, 3).t() for _ in range(size)]
    dist.all_gather(outputs, turned)
    for r, output in enumerate(outputs):
        assert torch.equal(output, torch.arange(6.0).reshape(2, 3).t() + 100 * r)

    grad = torch.full((5, 5), rank + 1.0, requires_grad=True)
    work = dist.broadcast(grad.detach().t(), 1, async_op=True)
    work.wait()
    assert grad.detach().eq(2).all()


def test_strided_tensors(world):
    world(2).run(strided)


def turned(rank, size):
    """Views that say "the negative of" and "the conjugate of" what lies in memory."""
    conjugate = torch.view_as_complex(torch.tensor([[1.0, 2.0]] * 4)).conj()
    negative = conjugate.imag
    assert negative.is_neg() and conjugate.is_conj()
    # The dispatcher of torch resolves such views before some calls; here the backend does.
    import stepccl

    (backend,) = stepccl.live.owners()
    backend.allreduce([negative]).wait()
    assert negative.tolist() == [-2.0 * size] * 4
    conjugate = torch.tensor([1 + 2j] * 4).conj()
    outputs = [torch.empty(4, dtype=torch.complex64) for _ in range(size)]
    backend.allgather([outputs], [conjugate]).wait()
    assert all(out.tolist() == [1 - 2j] * 4 for out in outputs)


def test_negative_and_conjugate_views_are_moved_as_they_read(world):
    world(2).run(turned)


def complex_numbers(rank, size):
    value = torch.full((3,), complex(rank, 1))
    dist.all_reduce(value)
    assert value.tolist() == [complex(sum(range(size)), size)] * 3


def test_complex_sums(world):
    """torch hands them over as pairs of real numbers."""
    world(2).run(complex_numbers)


def empty(rank, size):
    nothing = torch.empty(0)
    dist.all_reduce(nothing)
    dist.all_gather([torch.empty(0) for _ in range(size)], nothing)
    dist.all_to_all_single(torch.empty(0), nothing)
    mine = torch.ones(1)
    dist.all_reduce(mine)
    assert mine.item() == size


def test_empty_tensors_leave_the_group_usable(world):
    world(2).run(empty)


def objects(rank, size):
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * (rank * 100)})
    assert [g["rank"] for g in gathered] == list(range(size))
    given = [f"from {rank}"]
    dist.broadcast_object_list(given, src=1)
    assert given == ["from 1"]
    dist.barrier()


def test_object_collectives(world):
    world(4).run(objects)
