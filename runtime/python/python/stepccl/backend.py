"""The classes that torch.distributed instantiates.

torch 2.14 and newer take a Python subclass of c10d's Backend; 2.9 to 2.13 only one of its
ProcessGroup. Both get the same collectives.
"""

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

if not dist.is_available():
    raise ImportError(f"torch {torch.__version__} has no torch.distributed")

from torch.distributed import ProcessGroup

from . import handles, splitting
from .collectives import Collectives
from .life import NAME

OLDEST = (2, 9)
BACKEND_SUBCLASS = (2, 14)

_group: Any


def _torch_version() -> tuple[int, int]:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


if _torch_version() >= BACKEND_SUBCLASS:
    from torch._C._distributed_c10d import Backend, ErrorType

    class StepcclBackend(Collectives, Backend):
        """The backend of a group, for torch 2.14 and newer."""

        def __init__(
            self, store: Any, rank: int, size: int, group: str, timeout: timedelta
        ) -> None:
            Backend.__init__(self, rank, size)
            self._options = Backend.Options(NAME, timeout=timeout)
            self._options.group_name = group
            self._open(store, rank, size, group, timeout)

        @property
        def options(self) -> Any:
            return self._options

        @property
        def supports_splitting(self) -> bool:
            return True

        @property
        def supports_coalescing(self) -> bool:
            return True

        def split(self, store: Any, ranks: list[int], options: Any) -> "StepcclBackend":
            """The backend of a new group of these ranks, one of which is this rank."""
            rank = ranks.index(self._rank)
            made = StepcclBackend(store, rank, len(ranks), options.group_name, options._timeout)
            above = self._options.global_ranks_in_group
            made._options.global_ranks_in_group = [above[r] for r in ranks] if above else ranks
            return made

        def set_timeout(self, timeout: timedelta) -> None:
            super().set_timeout(timeout)
            self._options._timeout = timeout

        def get_error(self) -> Any:
            """Whether an operation of this group failed, as torch's watchdog asks."""
            return ErrorType.SUCCESS if self._error is None else ErrorType.COMM_ERROR

    _group = StepcclBackend

else:

    class StepcclProcessGroup(Collectives, ProcessGroup):
        """The group itself, for torch 2.9 to 2.13."""

        def __init__(
            self, store: Any, rank: int, size: int, group: str, timeout: timedelta
        ) -> None:
            ProcessGroup.__init__(self, rank, size)
            self._name, self._description = group, "undefined"
            self._open(store, rank, size, group, timeout)

        @property
        def group_name(self) -> str:
            return self._name

        @property
        def group_desc(self) -> str:
            return self._description

        def getGroupName(self) -> str:
            return self._name

        def setGroupName(self, name: str) -> None:
            self._name = name

        _set_group_name = setGroupName

        def getGroupDesc(self) -> str:
            return self._description

        def setGroupDesc(self, description: str) -> None:
            self._description = description

        _set_group_desc = setGroupDesc

        def _set_default_timeout(self, timeout: timedelta) -> None:
            self.set_timeout(timeout)

    _group = StepcclProcessGroup


def _create(options: Any, backend_options: object = None) -> Any:
    made = _group(
        options.store, options.group_rank, options.group_size, options.group_id, options.timeout
    )
    if hasattr(made, "options"):
        made.options.global_ranks_in_group = options.global_ranks_in_group
    return made


def register() -> None:
    """Tell torch.distributed about the backend; a second call does nothing.

    Raises ImportError for a torch that is too old.
    """
    if _torch_version() < OLDEST:
        raise ImportError(f"torch {torch.__version__} is too old for stepccl; 2.9 is the oldest")
    if _torch_version() >= BACKEND_SUBCLASS:
        handles.install()
        splitting.install()
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])
