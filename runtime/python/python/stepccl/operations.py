"""How every operation is handed to the Rust half, alone or as a part of a group.

Before: `runtime/python/python/stepccl/collectives.py`.
After: `runtime/python/src/communicator.rs`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from torch import Tensor
from torch.autograd import profiler

from . import _core
from .errors import NotSupportedError, for_torch
from .life import NAME, Life
from .tensors import Rows
from .work import Work

Call = Callable[[Tensor, Any], Work | None]


class Operations(Life):
    """Operations of one communicator. A call that torch waits for anyway is done when it returns,
    and has no handle: torch takes None for that."""

    # Operations since start_coalescing; None where there was none.
    _window: list[Work] | None = None

    def _submit(
        self,
        what: str,
        call: Callable[..., _core.Work | None],
        send: list[Tensor],
        recv: list[Tensor],
        results: Sequence[Tensor],
        *arguments: Any,
    ) -> Work | None:
        """Hand over one operation that reads `send` and writes `recv`."""
        rows = None
        try:
            # No context where there is nothing to label: it costs more than the question.
            if profiler._is_profiler_enabled:
                with _label(what):
                    part, rows = _hand_over(call, send, recv, arguments)
            else:
                try:
                    part = call(send, recv, *arguments)
                except _core.Scattered:
                    part, rows = _hand_over(call, send, recv, arguments)
        except _core.Error as error:
            raise self._raised(error) from error.__cause__
        self._sequence += 1
        if part is None:
            if rows is not None:
                rows.copy_back()
            return None
        work = Work([part], results, [] if rows is None else [rows.copy_back], self._failed)
        if self._window is not None:
            self._window.append(work)
        return work

    def _each(self, what: str, given: Sequence[Tensor], opts: Any, call: Call) -> Work | None:
        if len(given) == 1:
            return call(given[0], opts)
        if not given:
            raise ValueError(f"{what}: no tensors given")
        return self._together(opts, (partial(call, tensor, opts) for tensor in given))

    def _together(
        self,
        opts: Any,
        calls: Iterable[Callable[[], Work | None]],
        finish: Callable[[], None] | None = None,
        results: Sequence[Tensor] | None = None,
    ) -> Work | None:
        """Several operations as one: started together, ended together, by `finish` where given."""
        if self._window is not None:
            # They are part of what is collected already.
            return _joined([work for call in calls if (work := call())], self._failed)
        self.start_coalescing()
        try:
            for call in calls:
                call()
        except BaseException:
            self._window = None
            self._communicator.drop_group()
            raise
        synchronous = opts is not None and not getattr(opts, "asyncOp", True)
        return self._end(synchronous, finish, results)

    def start_coalescing(self) -> None:
        """Collect the operations from here to end_coalescing."""
        self._window = []
        self._communicator.start_group()

    def end_coalescing(self) -> Work:
        """One handle for the operations since start_coalescing."""
        work = self._end(False)
        assert work is not None
        return work

    def _end(
        self,
        synchronous: bool,
        finish: Callable[[], None] | None = None,
        results: Sequence[Tensor] | None = None,
    ) -> Work | None:
        collected, self._window = self._window or [], None
        try:
            parts = self._communicator.end_group(synchronous)
        except _core.Error as error:
            raise self._raised(error) from error.__cause__
        work = _joined(collected, self._failed, parts)
        if finish is not None:
            work.also(finish, results or [])
        if not synchronous:
            return work
        work.wait()
        return None

    def _failed(self, error: Exception) -> None:
        self._error = self._error or error

    def _raised(self, error: _core.Error) -> _core.Error:
        if isinstance(error, NotSupportedError):
            return error
        self._failed(error)
        return for_torch(error)


def _hand_over(
    call: Callable[..., _core.Work | None],
    send: list[Tensor],
    recv: list[Tensor],
    arguments: tuple[Any, ...],
) -> tuple[_core.Work | None, Rows | None]:
    """The handle, and the copies that were moved where the tensors could not be as they are."""
    try:
        return call(send, recv, *arguments), None
    except _core.Scattered:
        rows = Rows(send, recv)
        return call(rows.send, rows.recv, *arguments), rows


def _joined(
    works: Sequence[Work],
    on_error: Callable[[Exception], None],
    parts: Sequence[_core.Work] | None = None,
) -> Work:
    return Work(
        [part for work in works for part in work._parts] if parts is None else parts,
        [tensor for work in works for tensor in work._results],
        [finish for work in works for finish in work._after],
        on_error,
    )


def _label(what: str) -> Any:
    return profiler.record_function(f"{NAME}:{what}")
