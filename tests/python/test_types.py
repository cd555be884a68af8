"""Every element type and reduction that torch has and the backend takes, on numbers that are exact."""

import pytest
import torch
import torch.distributed as dist
from reference import DTYPES, MORE_DTYPES

COUNTS = [1, 5, 3001]
SUMS = ["SUM", "PRODUCT", "MAX", "MIN"]
BITS = ["BAND", "BOR", "BXOR"]


def ops_of(dtype):
    kind = getattr(torch, dtype)
    if kind.is_complex:
        # torch hands sums over as pairs of real numbers, and refuses the others itself.
        return ["SUM"]
    if kind is torch.bool or not kind.is_floating_point:
        return SUMS + BITS
    return SUMS


def numbers(rank, count):
    return (torch.arange(count) * 3 + rank * 5) % 7 % 2 + 1


def combined(parts, op, is_bool):
    total = parts[0]
    for part in parts[1:]:
        match op:
            case "SUM":
                total = total | part if is_bool else total + part
            case "PRODUCT":
                total = total * part
            case "MAX":
                total = total.maximum(part)
            case "MIN":
                total = total.minimum(part)
            case "BAND":
                total = total & part
            case "BOR":
                total = total | part
            case _:
                total = total ^ part
    return total


def reductions(rank, size, dtype):
    kind = getattr(torch, dtype)
    for op in ops_of(dtype):
        for count in COUNTS:
            parts = [numbers(r, count) - int(kind is torch.bool) for r in range(size)]
            want = combined(parts, op, kind is torch.bool)
            reduce_op = getattr(dist.ReduceOp, op)
            mine = parts[rank].to(kind, copy=True)
            dist.all_reduce(mine, reduce_op)
            assert torch.equal(mine.to(torch.complex128).real, want.double()), (op, count)
            mine = parts[rank].to(kind, copy=True)
            dist.reduce(mine, 1, reduce_op)
            if rank == 1:
                assert torch.equal(mine.to(torch.complex128).real, want.double()), (op, count)


def movements(rank, size, dtype):
    kind = getattr(torch, dtype)
    for count in COUNTS:
        mine = numbers(rank, count).to(kind)
        whole = torch.zeros(count * size, dtype=torch.int64).to(kind)
        dist.all_gather_into_tensor(whole, mine)
        want = torch.cat([numbers(r, count) for r in range(size)]).to(kind)
        assert torch.equal(whole.to(torch.complex128), want.to(torch.complex128))


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("dtype", DTYPES + MORE_DTYPES)
@pytest.mark.parametrize("what", [reductions, movements], ids=lambda f: f.__name__)
def test_every_type(world, what, dtype, size):
    world(size).run(what, dtype)


def premultiplied(rank, size):
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        for factor in (rank + 2.0, torch.tensor([rank + 2.0])):
            mine = torch.full((1000,), rank + 1).to(dtype)
            dist.all_reduce(mine, dist._make_nccl_premul_sum(factor))
            want = sum((r + 1) * (r + 2) for r in range(size))
            assert mine.eq(want).all(), (dtype, factor, mine[0])


@pytest.mark.skipif(
    not hasattr(dist, "_make_nccl_premul_sum"), reason="this torch is built without PREMUL_SUM"
)
def test_premultiplied_sums(world):
    world(2).run(premultiplied)


def odd_addresses(rank, size):
    raw = torch.zeros(4 * 100 + 1, dtype=torch.uint8)
    odd = torch.frombuffer(memoryview(raw.numpy())[1:], dtype=torch.float32)
    assert odd.data_ptr() % 4 == 1
    odd.fill_(rank + 1.0)
    dist.all_reduce(odd)
    assert odd.eq(size * (size + 1) / 2).all()


def test_tensors_at_odd_addresses(world):
    world(2).run(odd_addresses)
