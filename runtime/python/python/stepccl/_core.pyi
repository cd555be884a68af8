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

    def send(
        self,
        ptr: int,
        nbytes: int,
        peer: int,
        tag: int,
        keep: object,
        synchronous: bool,
        timeout_s: float | None,
    ) -> Work:
        """Send bytes to one rank."""

    def recv(
        self,
        ptr: int,
        nbytes: int,
        peer: int,
        tag: int,
        keep: object,
        synchronous: bool,
        timeout_s: float | None,
    ) -> Work:
        """Receive bytes from one rank."""

    def recv_any(
        self,
        ptr: int,
        nbytes: int,
        tag: int,
        keep: object,
        synchronous: bool,
        timeout_s: float | None,
    ) -> Work:
        """Receive bytes from whichever rank sends first."""

    def start_uneven(
        self,
        collective: str,
        dtype: str,
        op: str,
        send_counts: list[int],
        recv_counts: list[int],
        send: list[int],
        recv: list[int],
        keep: object,
        synchronous: bool,
        timeout_s: float | None,
        premul: float,
    ) -> Work:
        """Start a collective whose blocks have these many elements.

        all_gather reads `recv_counts`, reduce_scatter `send_counts`, all_to_all both. The rest is
        as for `start`.
        """

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

def version() -> str:
    """Version of the package."""

def info() -> dict[str, Any]:
    """What this build has: engines, ABI, features of the processor."""
