"""Errors, and how those of the extension become errors that torch programs expect."""

from functools import cache

from ._core import AbortedError, Error, PeerLostError, RefusedError
from ._core import TimeoutError_ as TimeoutError

__all__ = [
    "AbortedError",
    "Error",
    "NotSupportedError",
    "PeerLostError",
    "RefusedError",
    "TimeoutError",
    "for_torch",
]


class NotSupportedError(Error, NotImplementedError):
    """The call is right, but this build or this engine cannot do it."""


@cache
def _torch_class(kind: type[Error]) -> type[Error]:
    import torch.distributed as dist

    return type(kind.__name__, (kind, dist.DistBackendError), {"__module__": "stepccl"})


def for_torch(error: Error) -> Error:
    """The same error, caught by ``except torch.distributed.DistBackendError`` as well."""
    made = _torch_class(type(error))(*error.args)
    made.__cause__ = error.__cause__
    return made.with_traceback(error.__traceback__)
