"""The Rust half of the package."""

from collections.abc import Callable
from typing import Any, Protocol, TypedDict, final

class Store(Protocol):
    """Where ranks find one another; a c10d store has these."""

    def set(self, key: str, value: Any, /) -> Any: ...
    def get(self, key: str, /) -> bytes: ...
    def add(self, key: str, amount: int, /) -> int: ...
    def check(self, keys: list[str], /) -> bool: ...

class Settings(TypedDict, total=False):
    """What a communicator may be told; what is missing is chosen for it."""

    buffer_size: int
    """Staging of this rank in bytes, at most."""
    enable_dma: bool
    """Whether copies may be given to DMA channels."""
    pipeline_depth: int
    """Pages in flight."""
    page_size: int
    """Bytes of a page of one block."""

class Error(RuntimeError):
    """Base of the errors below."""

class TimeoutError_(Error):
    """An operation, or start-up, took longer than its limit."""

class PeerLostError(Error):
    """Another rank died, closed its communicator or failed."""

class RefusedError(Error):
    """Ranks do not agree at start-up: world size, rank, secret or version."""

class AbortedError(Error):
    """The communicator was aborted or closed."""

class ForkedError(Error):
    """Used in the child of a fork; it belongs to the parent."""

class NotDense(TypeError):
    """A tensor is not dense; nothing was started."""

class Scattered(Exception):
    """The elements of a tensor do not lie in a row; nothing was started."""

@final
class Communicator:
    """The ranks that run collectives together. Waits release the GIL."""

    def __new__(
        cls,
        store: Store,
        rank: int,
        size: int,
        name: str,
        timeout_s: float,
        config: dict[str, Any],
    ) -> Communicator:
        """Meet the other ranks; returns when all of them are there.

        `config` has the keys of Settings. Raises ValueError for a bad value, Error otherwise.
        """

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def start(
        self,
        collective: str,
        dtype: str,
        op: str,
        root: int,
        count: int,
        send: list[int],
        recv: list[int],
        keep: object,
        synchronous: bool,
        timeout_s: float | None,
        premul: float = 1.0,
    ) -> Work:
        """Start a collective of `count` elements a block.

        `premul` is what the operation `mulsum` multiplies this rank's input by.

        `send` and `recv` are addresses: none, one for all blocks in a row, or one a block. `keep`
        lives until the operation is done. With `synchronous` the call returns a finished Work.
        """

    def collective(
        self,
        send: list[Any],
        recv: list[Any],
        collective: str,
        root: int,
        count: int | tuple[list[int], list[int]],
        opts: Any,
        timeout_s: float,
    ) -> Work | None:
        """Run or start a collective that reads the tensors `send` and writes the tensors `recv`.

        Each list has none, one with all blocks in a row, or one a block; one list given twice is
        for work in place. `count` is the number of elements of a block; or two lists: of each block
        sent, and of each received. `opts` are c10d's options of the collective, or None; the group's
        limit `timeout_s` counts where they have none. Returns None for a synchronous call, which is
        done then. Raises Scattered for tensors that must be copied first, NotDense for sparse ones.
        """

    def message(
        self, send: list[Any], recv: list[Any], peer: int | None, tag: int, timeout_s: float
    ) -> Work | None:
        """Start to send the tensor of `send`, or to receive into that of `recv`.

        The other list is empty. Without `peer` it comes from whichever rank sends first.
        """

    def start_group(self) -> None:
        """Collect operations from here on, until end_group."""

    def drop_group(self) -> None:
        """Forget what was collected."""

    def end_group(self, synchronous: bool) -> list[Work]:
        """Run or start what was collected as one; handles only of what was started."""

    def abort(self, reason: str) -> None:
        """Fail every operation that is not done, here and at the peers."""

    def close(self) -> None:
        """Let go of everything; operations after it raise AbortedError."""

    def stats(self) -> dict[str, Any]:
        """Counters since creation."""

@final
class Work:
    """One operation that was started."""

    def wait(self, timeout_s: float | None) -> None:
        """Return when it is done; raise its error, or TimeoutError_ after `timeout_s`."""

    def is_done(self) -> bool:
        """Whether it ended, well or not."""

    def source(self) -> int | None:
        """Rank whose message a receive from any source has taken; None for all else."""

    def exception(self) -> Exception | None:
        """Its error, if it ended with one."""

    def on_done(self, callback: Callable[[Exception | None], None], /) -> None:
        """Call back once when it ends, from any thread; at once if it has ended."""

def forked() -> None:
    """Say that this is the child of a fork: nothing made before is used any more."""

def dump(operations: int) -> str:
    """The last operations of this process's communicators, for people."""

def trace_json() -> str:
    """They as the JSON of a Chrome trace."""

def version() -> str:
    """Version of the package."""

def info() -> dict[str, Any]:
    """What this build has: engines, ABI, features of the processor."""
