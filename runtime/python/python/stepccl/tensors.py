"""Tensors whose elements do not lie in a row: moved through copies that do."""

import torch
from torch import Tensor


class Rows:
    """The tensors of one operation, each as it is or a copy whose elements lie in a row.

    `send` is what the operation reads, `recv` what it writes in full; where both are one list, it
    reads and then writes. `copy_back` is to be called when the operation is done.
    """

    __slots__ = ("_restore", "recv", "send")

    def __init__(self, send: list[Tensor], recv: list[Tensor]) -> None:
        self._restore: list[tuple[Tensor, Tensor]] = []
        if send is recv:
            self.send = self.recv = [self._written(tensor, True) for tensor in recv]
        else:
            self.send = [_read(tensor) for tensor in send]
            self.recv = [self._written(tensor, False) for tensor in recv]

    def _written(self, tensor: Tensor, read: bool) -> Tensor:
        if _plain(tensor):
            return tensor
        copy = torch.empty(tensor.shape, dtype=tensor.dtype)
        if read:
            copy.copy_(tensor.detach())
        self._restore.append((tensor, copy))
        return copy

    def copy_back(self) -> None:
        """Copy what was written to where it belongs."""
        with torch.no_grad():
            for destination, source in self._restore:
                destination.copy_(source)


def _read(tensor: Tensor) -> Tensor:
    return tensor if _plain(tensor) else tensor.detach().resolve_conj().resolve_neg().contiguous()


def _plain(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()
