"""Inputs that every rank can recompute for every other, and results in float64 or int64."""

import torch

DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"]
# Types and operations besides, with small numbers whose results are exact.
MORE_DTYPES = ["int8", "uint32", "uint64", "bool", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128"]
OPS = ["sum", "max", "min", "avg"]
COUNTS = [1, 3, 1000, 70_001]


def block(rank: int, index: int, count: int, dtype: str, seed: int = 0) -> torch.Tensor:
    """Random elements that rank `rank` contributes as its block `index`."""
    kind = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(seed * 1_000_003 + rank * 1009 + index)
    if kind.is_floating_point:
        return torch.randn(count, generator=generator, dtype=torch.float64).to(kind)
    low, high = (0, 50) if dtype == "uint8" else (-1000, 1000)
    return torch.randint(low, high, (count,), generator=generator).to(kind)


def reduced(parts: list[torch.Tensor], op: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The exact result, and how far each element may be from it."""
    wide = torch.float64 if parts[0].dtype.is_floating_point else torch.int64
    stack = torch.stack([part.to(wide) for part in parts])
    none = torch.zeros(stack.shape[1:], dtype=torch.float64)
    if op == "max":
        return stack.amax(0), none
    if op == "min":
        return stack.amin(0), none
    total = stack.sum(0)
    if op == "avg" and wide is torch.int64:
        return torch.div(total, len(parts), rounding_mode="trunc"), none
    result = total / len(parts) if op == "avg" else total
    if wide is torch.int64:
        return result, none
    # One rounding an addition, and one more for the division, of at most the sum of the sizes.
    steps = len(parts) + (op == "avg")
    return result, steps * torch.finfo(parts[0].dtype).eps * stack.abs().sum(0)


def assert_close(got: torch.Tensor, want: tuple[torch.Tensor, torch.Tensor], what: str) -> None:
    """Fail naming the worst element."""
    exact, bound = want
    if not exact.dtype.is_floating_point:
        assert torch.equal(got.to(torch.int64), exact), f"{what}: integers differ"
        return
    excess = (got.to(torch.float64) - exact).abs() - bound
    worst = int(excess.argmax())
    assert excess[worst] <= 0, (
        f"{what}: element {worst} is {got[worst]}, exact {exact[worst]}, bound {bound[worst]}"
    )
