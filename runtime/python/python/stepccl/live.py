"""The communicators of this process that are not destroyed.

torch may drop its reference to a Python backend while it still calls it (on torch 2.15 with
TORCH_DISTRIBUTED_DEBUG=DETAIL), so the owners are kept here until they are shut down.
"""

import os
from typing import Any, Protocol

from . import _core

_owners: dict[str, "Owner"] = {}


class Owner(Protocol):
    """What owns a communicator."""

    def stats(self) -> dict[str, Any]: ...


def add(name: str, owner: Owner) -> None:
    """Keep `owner` alive under the name of its communicator."""
    _owners[name] = owner


def remove(name: str) -> None:
    """Let the owner go; nothing happens for a name that is not there."""
    _owners.pop(name, None)


def owners() -> list[Any]:
    """All of them, the oldest first."""
    return list(_owners.values())


def stats() -> dict[str, dict[str, object]]:
    """Counters of each, by name."""
    return {name: dict(owner.stats()) for name, owner in list(_owners.items())}


def _in_child() -> None:
    _core.forked()
    _owners.clear()


# A child of a fork has the communicators of its parent in its memory, and must not use them.
os.register_at_fork(after_in_child=_in_child)
