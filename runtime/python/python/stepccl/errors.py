"""Errors, and how those of the extension become errors that torch programs expect."""

from typing import Any

from ._core import AbortedError, Error, ForkedError, PeerLostError, RefusedError
from ._core import TimeoutError_ as TimeoutError

__all__ = [
    "AbortedError",
    "Error",
    "ForkedError",
    "NotSupportedError",
    "PeerLostError",
    "RefusedError",
    "TimeoutError",
    "for_torch",
]


class NotSupportedError(Error, NotImplementedError):
    """The call is right, but this build or this engine cannot do it."""


_torch_classes: dict[Any, Any] = {}


def _torch_class(kind: type[Error]) -> Any:
    found = _torch_classes.get(kind)
    if found is None:
        import torch.distributed as dist

        bases = (kind, dist.DistBackendError)
        found = type(kind.__name__.rstrip("_"), bases, {"__module__": "stepccl"})
        _torch_classes[kind] = found
    return found


def for_torch(error: Error) -> Error:
    """The same error, caught by ``except torch.distributed.DistBackendError`` as well."""
    made: Error = _torch_class(type(error))(*error.args)
    made.__cause__ = error.__cause__
    return made.with_traceback(error.__traceback__)
