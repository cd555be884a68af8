"""What torch's own handles of operations do not ask the backend.

torch 2.14 and newer hand out a handle of their own for an operation of a Python backend. It passes
on `wait` and `get_future` only. So whether the operation has ended, and which rank a receive from
any rank was served by (`dist.recv` without a source asks that), is answered here, by the future.
"""

from collections import OrderedDict
from typing import Any

from torch import Tensor
from torch._C._distributed_c10d import Work

# Receives that ended and were not asked about yet, by address of the tensor.
_sources: OrderedDict[int, int] = OrderedDict()
_MOST = 4096

_handle: Any = Work
_source_of_torch = _handle._source_rank
_completed_of_torch = _handle.is_completed


def note_source(tensor: Tensor, source: int) -> None:
    """Remember the source of what was received into `tensor`."""
    _sources[tensor.data_ptr()] = source
    while len(_sources) > _MOST:
        _sources.popitem(last=False)


def _source_rank(work: Any) -> int:
    try:
        answer: int = _source_of_torch(work)
        return answer
    except RuntimeError:
        received = work.get_future().value()
        if len(received) == 1 and received[0].data_ptr() in _sources:
            return _sources.pop(received[0].data_ptr())
        raise


def _is_completed(work: Any) -> bool:
    if _completed_of_torch(work):
        return True
    try:
        done: bool = work.get_future().done()
    except RuntimeError:
        # Handles of other backends may have no future; they know by themselves.
        return False
    return done


def install() -> None:
    """Let torch's handles answer; a second call does nothing."""
    _handle._source_rank = _source_rank
    _handle.is_completed = _is_completed
