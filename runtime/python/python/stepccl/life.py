"""What a process group is besides its operations: how it opens, what torch asks it, how it ends."""

from datetime import timedelta
from typing import Any

from . import _core, config, live
from .errors import ForkedError, for_torch

NAME = "stepccl"


class Life:
    """A communicator from its opening to its end."""

    _communicator: _core.Communicator

    def _open(self, store: Any, rank: int, size: int, group: str, timeout: timedelta) -> None:
        """Meet the other ranks. Collective: every rank of the group calls it."""
        self._rank, self._size = rank, size
        self._timeout_s = timeout.total_seconds()
        self._sequence = 0
        self._closed = False
        self._error: Exception | None = None
        # A store may outlive a group and see another of the same name. Each rank counts for
        # itself; since all ranks make the same groups, they count alike.
        generation = store.add(f"{NAME}/generation/{rank}", 1)
        self._label = f"{group or 'default'}/{generation}"
        try:
            self._communicator = _core.Communicator(
                store, rank, size, self._label, self._timeout_s, config.snapshot()
            )
        except _core.Error as error:
            raise for_torch(error) from error.__cause__
        live.add(self._label, self)

    def getBackendName(self) -> str:
        return NAME

    def stats(self) -> dict[str, Any]:
        """Counters of the communicator."""
        return self._communicator.stats()

    def set_timeout(self, timeout: timedelta) -> None:
        """Limit of operations started from now on, unless their options have one."""
        limit = timeout.total_seconds()
        if limit <= 0:
            raise ValueError(f"timeout = {timeout}: must be above 0")
        self._timeout_s = limit

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def _set_sequence_number_for_group(self) -> None:
        # The number starts at 0 on every rank; there is nothing to agree on.
        pass

    def shutdown(self) -> None:
        """Close the communicator; a second call does nothing."""
        self._closed = True
        live.remove(self._label)
        self._communicator.close()

    def abort(self) -> None:
        """Fail what is in flight, here and at the peers, then close."""
        if self._closed:
            return
        try:
            self._communicator.abort("the process group was aborted")
        except ForkedError:
            # It is the parent's to abort.
            pass
        self.shutdown()
