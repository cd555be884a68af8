"""What the backend asks of a tensor, and the memory behind it."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from .errors import NotSupportedError

_DTYPES = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.float8_e4m3fn: "float8_e4m3fn",
    torch.float8_e5m2: "float8_e5m2",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.uint32: "uint32",
    torch.uint64: "uint64",
    torch.bool: "bool",
    torch.complex64: "complex64",
    torch.complex128: "complex128",
}

_OPS = {
    ReduceOp.RedOpType.SUM: "sum",
    ReduceOp.RedOpType.PRODUCT: "prod",
    ReduceOp.RedOpType.MAX: "max",
    ReduceOp.RedOpType.MIN: "min",
    ReduceOp.RedOpType.AVG: "avg",
    ReduceOp.RedOpType.PREMUL_SUM: "mulsum",
    ReduceOp.RedOpType.BAND: "band",
    ReduceOp.RedOpType.BOR: "bor",
    ReduceOp.RedOpType.BXOR: "bxor",
}


def dtype_name(what: str, tensor: Tensor) -> str:
    """The element type as the extension names it.

    Raises TypeError for a tensor that cannot be moved: type, device or layout.
    """
    if tensor.device.type != "cpu":
        raise TypeError(
            f"{what}: tensor on {tensor.device}; this build of stepccl moves CPU tensors only"
        )
    if tensor.layout is not torch.strided:
        raise TypeError(f"{what}: tensor with layout {tensor.layout}; only dense tensors are moved")
    name = _DTYPES.get(tensor.dtype)
    if name is None:
        raise TypeError(
            f"{what}: dtype {tensor.dtype}; supported are {', '.join(_DTYPES.values())}"
        )
    return name


def op_name(what: str, op: ReduceOp | ReduceOp.RedOpType) -> str:
    """The reduction as the extension names it.

    Raises NotSupportedError for one that it does not have.
    """
    kind = getattr(op, "op", op)
    name = _OPS.get(kind)
    if name is None:
        raise NotSupportedError(
            f"{what}: reduce op {getattr(kind, 'name', kind)}; "
            f"supported are {', '.join(n.upper() for n in _OPS.values())}"
        )
    return name


def factor(what: str, op: ReduceOp) -> float:
    """What a PREMUL_SUM multiplies this rank's input by.

    Raises ValueError for a factor that is not one number.
    """
    _, value = op.__getstate__()
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"{what}: a factor of {value.numel()} elements; it must be one number")
    return float(value)


def one(what: str, tensors: Sequence[Tensor]) -> Tensor:
    """The only tensor of a list.

    Raises ValueError for another number of them.
    """
    if len(tensors) != 1:
        raise ValueError(f"{what}: {len(tensors)} tensors given; CPU ranks take exactly 1")
    return tensors[0]


def same_type(what: str, left: Tensor, right: Tensor) -> None:
    """Check that two tensors have one element type and device.

    Raises TypeError.
    """
    if left.dtype != right.dtype:
        raise TypeError(f"{what}: one tensor is {left.dtype}, the other {right.dtype}")
    if left.device != right.device:
        raise TypeError(f"{what}: one tensor is on {left.device}, the other on {right.device}")


def same_blocks(what: str, blocks: Sequence[Tensor], size: int, like: Tensor) -> bool:
    """Check a list of one tensor a rank against the tensor on the other side; whether all of them
    have as many elements as it.

    Raises ValueError for the wrong number of tensors, TypeError for mixed types.
    """
    if len(blocks) != size:
        raise ValueError(f"{what}: {len(blocks)} tensors in the list; one a rank is {size}")
    for index, block in enumerate(blocks):
        if block.dtype != like.dtype:
            raise TypeError(
                f"{what}: tensor {index} is {block.dtype}, the other side is {like.dtype}"
            )
        if block.device != like.device:
            raise TypeError(
                f"{what}: tensor {index} is on {block.device}, the other side on {like.device}"
            )
    return all(block.numel() == like.numel() for block in blocks)


def even_blocks(what: str, blocks: Sequence[Tensor], size: int, like: Tensor) -> None:
    """As same_blocks, for collectives that take blocks of one length only.

    Raises NotSupportedError for uneven ones as well.
    """
    if not same_blocks(what, blocks, size, like):
        raise NotSupportedError(
            f"{what}: tensors of {[block.numel() for block in blocks]} elements, the other side "
            f"{like.numel()}; uneven sizes are supported by all_gather, reduce_scatter and "
            "all_to_all"
        )


def own_block(what: str, block: Tensor, part: Tensor) -> None:
    """Check this rank's block of a list against its tensor on the other side.

    Raises ValueError.
    """
    if block.numel() != part.numel():
        raise ValueError(
            f"{what}: the list has {block.numel()} elements for this rank, the other side "
            f"{part.numel()}; they must be as many"
        )


def joined_blocks(what: str, whole: Tensor, part: Tensor, size: int) -> None:
    """Check a tensor of all ranks' blocks against one block.

    Raises ValueError or TypeError.
    """
    if whole.dtype != part.dtype:
        raise TypeError(f"{what}: one tensor is {whole.dtype}, the other {part.dtype}")
    if whole.device != part.device:
        raise TypeError(f"{what}: one tensor is on {whole.device}, the other on {part.device}")
    if whole.numel() != part.numel() * size:
        raise ValueError(
            f"{what}: {whole.numel()} elements on one side, {part.numel()} on the other; "
            f"the first must be {size} times the second for {size} ranks"
        )


class Memory:
    """Addresses for one operation.

    A tensor whose elements do not lie in a row is moved through a copy that does; `restore` then
    has what must be copied back when the operation is done.
    """

    __slots__ = ("keep", "restore")

    def __init__(self) -> None:
        self.keep: list[Tensor] = []
        self.restore: list[tuple[Tensor, Tensor]] = []

    def read(self, tensor: Tensor) -> int:
        """Address of a tensor that the operation reads."""
        if not _plain(tensor):
            tensor = tensor.detach().resolve_neg().contiguous()
        return self._kept(tensor)

    def write(self, tensor: Tensor) -> int:
        """Address of a tensor that the operation writes in full."""
        if not _plain(tensor):
            copy = torch.empty(tensor.shape, dtype=tensor.dtype)
            self.restore.append((tensor, copy))
            tensor = copy
        return self._kept(tensor)

    def update(self, tensor: Tensor) -> int:
        """Address of a tensor that the operation reads and then writes."""
        if tensor.layout is not torch.strided:
            raise TypeError(f"tensor with layout {tensor.layout}; only dense tensors are moved")
        if not _plain(tensor):
            copy = torch.empty(tensor.shape, dtype=tensor.dtype)
            copy.copy_(tensor.detach())
            self.restore.append((tensor, copy))
            tensor = copy
        return self._kept(tensor)

    def _kept(self, tensor: Tensor) -> int:
        self.keep.append(tensor)
        address: int = tensor.data_ptr()
        return address


def _plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_neg()
