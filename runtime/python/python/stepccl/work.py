"""The handle that torch gets for an operation."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import _core, handles
from .errors import Error, TimeoutError, for_torch


def seconds(timeout: timedelta | None) -> float | None:
    """Seconds of a c10d timeout; None where it says "the group's own" (zero or negative)."""
    if timeout is None:
        return None
    value = timeout.total_seconds()
    return value if value > 0 else None


def as_torch(error: Exception) -> Exception:
    """An error of the extension as torch programs expect it; others unchanged."""
    return for_torch(error) if isinstance(error, Error) else error


class Work(dist._Work):
    """One operation, or several that are waited for together.

    `parts` are the extension's handles, `after` what is to be done once all of them are, `results`
    the tensors that the future gives.
    """

    def __init__(
        self,
        parts: Sequence[_core.Work],
        results: Sequence[Tensor],
        after: list[Callable[[], None]],
        on_error: Callable[[Exception], None],
    ) -> None:
        super().__init__()
        self._parts = parts
        self._results = results
        self._after = after
        self._on_error = on_error
        self._lock = threading.Lock()
        self._future: Any = None

    def also(self, finish: Callable[[], None], results: Sequence[Tensor]) -> None:
        """Before it is used: something else to do at the end, which makes these results."""
        self._after.append(finish)
        self._results = results

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Return True when the operation is done; the GIL is released meanwhile.

        Without a timeout, or with zero, the operation's own limit counts. Raises the operation's
        error, or TimeoutError naming the limit.
        """
        limit = seconds(timeout)
        end = None if limit is None else time.monotonic() + limit
        try:
            for part in self._parts:
                part.wait(None if end is None else max(end - time.monotonic(), 1e-6))
        except _core.Error as error:
            # A wait that gives up early leaves the operation running.
            if not (isinstance(error, TimeoutError) and self._pending()):
                self._failed(error)
            raise for_torch(error) from error.__cause__
        self._finish()
        return True

    def synchronize(self) -> None:
        """The same as wait()."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the operation ended, well or not."""
        return not self._pending()

    def is_success(self) -> bool:
        """Whether the operation ended well."""
        return not self._pending() and self.exception() is None

    def exception(self) -> Exception | None:
        """The error of an operation that ended with one."""
        for part in self._parts:
            error = part.exception() if part.is_done() else None
            if error is not None:
                return as_torch(error)
        return None

    def _source_rank(self) -> int:
        """Rank whose message a receive from any source has taken."""
        source = self._parts[0].source() if len(self._parts) == 1 else None
        if source is None:
            raise ValueError("_source_rank: this is not a receive from any source that has ended")
        return source

    def result(self) -> list[Tensor]:
        """The tensors that the operation wrote; waits for them."""
        self.wait()
        return list(self._results)

    def get_future(self) -> Any:
        """A torch future that gets the written tensors, or the error, when the operation ends.

        Its callbacks may run on a thread of the communicator: they must not wait for another
        operation of it.
        """
        with self._lock:
            if self._future is not None:
                return self._future
            self._future = torch.futures.Future()
        _Countdown(self._parts, self._settle).start()
        return self._future

    def _settle(self, error: Exception | None) -> None:
        if error is None:
            self._finish()
            self._future.set_result(list(self._results))
        else:
            self._failed(error)
            self._future.set_exception(as_torch(error))

    def _pending(self) -> bool:
        return not all(part.is_done() for part in self._parts)

    def _failed(self, error: Exception) -> None:
        self._on_error(error)

    def _finish(self) -> None:
        if len(self._parts) == 1 and len(self._results) == 1:
            rank = self._parts[0].source()
            if rank is not None:
                handles.note_source(self._results[0], rank)
        if not self._after:
            return
        # wait() and the future may get here at once.
        with self._lock:
            for finish in self._after:
                finish()
            self._after = []


class _Countdown:
    """Calls back once, when the last of several parts ended, with the first error."""

    def __init__(
        self, parts: Sequence[_core.Work], then: Callable[[Exception | None], None]
    ) -> None:
        self._parts = parts
        self._then = then
        self._left = len(parts)
        self._error: Exception | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        if not self._parts:
            self._then(None)
        for part in self._parts:
            part.on_done(self._one)

    def _one(self, error: Exception | None) -> None:
        with self._lock:
            self._error = self._error or error
            self._left -= 1
            last = self._left == 0
        if last:
            self._then(self._error)
