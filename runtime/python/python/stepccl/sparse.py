"""The sum of sparse tensors: each rank gets the elements of all, and adds them up.

Before: `runtime/python/python/stepccl/collectives.py`. After: its own all_gather.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Size, Tensor

from .errors import NotSupportedError

# Numbers of a head: dimensions of the indices, elements, dimensions, and the length of each.
HEAD = 16


@dataclass(frozen=True)
class Now:
    """Options of a call that is done when it returns."""

    timeout: timedelta
    asyncOp: bool = False


class Parts:
    """The tensor of this rank, and room for those of all ranks."""

    def __init__(self, tensor: Tensor) -> None:
        """Raises NotSupportedError for a layout or a number of dimensions that is not possible."""
        if tensor.layout != torch.sparse_coo or tensor.dim() > HEAD - 3:
            raise NotSupportedError(
                f"all_reduce: tensor of {tensor.dim()} dimensions with layout {tensor.layout}; sparse "
                f"ones must be torch.sparse_coo and have at most {HEAD - 3} dimensions"
            )
        self._tensor = tensor
        own = tensor.detach().coalesce()
        self.indices = own.indices().contiguous()
        self.values = own.values().contiguous()
        numbers = [own.sparse_dim(), own._nnz(), own.dim(), *own.shape]
        self.head = torch.tensor(numbers + [0] * (HEAD - len(numbers)))

    def make_room(self, heads: Sequence[Tensor]) -> None:
        """Take the heads of all ranks.

        Raises ValueError, on all ranks alike, where their tensors differ in shape.
        """
        rows = [head.tolist() for head in heads]
        shapes = [(row[0], Size(row[3 : 3 + row[2]])) for row in rows]
        for rank, (dimensions, shape) in enumerate(shapes):
            if (dimensions, shape) != shapes[0]:
                raise ValueError(
                    f"all_reduce: sparse tensor of shape {list(shapes[0][1])} with {shapes[0][0]} "
                    f"dimensions of indices on rank 0, {list(shape)} with {dimensions} on rank {rank}; "
                    "they must be the same on all ranks"
                )
        lengths = [row[1] for row in rows]
        like, dense = self.indices, self.values.shape[1:]
        self.all_indices = [like.new_empty((like.shape[0], length)) for length in lengths]
        self.all_values = [self.values.new_empty((length, *dense)) for length in lengths]

    def add_up(self) -> None:
        """Write the sum into the tensor of this rank; equal to the bit on all ranks."""
        indices, values = torch.cat(self.all_indices, 1), torch.cat(self.all_values)
        whole = torch.sparse_coo_tensor(indices, values, self._tensor.shape)
        with torch.no_grad():
            self._tensor.copy_(whole.coalesce())
