"""Checks of the tensors of a collective against one another and against the number of ranks."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .errors import NotSupportedError


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
            # Other ranks read the start of it.
            f"{what}: tensors that differ in length; all_gather, reduce_scatter and all_to_all "
            f"take those: {[block.numel() for block in blocks]} elements in the list, "
            f"{like.numel()} on the other side"
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


def same_length(what: str, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Check that there is an output for each input.

    Raises ValueError.
    """
    if len(outputs) != len(inputs) or not outputs:
        raise ValueError(
            f"{what}: {len(outputs)} outputs and {len(inputs)} inputs; must be as many, at least 1"
        )


def splits(what: str, tensor: Tensor, rows: Sequence[int], size: int) -> list[int]:
    """Elements of each block, from numbers of rows; even ones where there are none.

    Raises ValueError.
    """
    length = tensor.size(0) if tensor.dim() else 1
    if not rows:
        if length % size and tensor.numel():
            raise ValueError(
                f"{what}: first dimension {length}: must be a multiple of the {size} ranks"
            )
        return [tensor.numel() // size] * size
    if len(rows) != size or sum(rows) != length or min(rows) < 0:
        raise ValueError(
            f"{what}: splits {list(rows)}: must be {size} numbers, none below 0, "
            f"that add up to {length}"
        )
    return [split * (tensor.numel() // max(length, 1)) for split in rows]
