"""c10d's messages between two ranks."""

from collections.abc import Sequence

from torch import Tensor

from . import blocks
from .operations import Operations
from .work import Work


class Messages(Operations):
    """Sends and receives. They are never done when the call returns: both sides of an exchange may
    send first."""

    def send(self, tensors: Sequence[Tensor], dst: int, tag: int = 0) -> Work | None:
        tensor = blocks.one("send", tensors)
        return self._message("send", [tensor], [], [tensor], dst, tag)

    def recv(self, tensors: Sequence[Tensor], src: int, tag: int = 0) -> Work | None:
        tensor = blocks.one("recv", tensors)
        return self._message("recv", [], [tensor], [tensor], src, tag)

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Work | None:
        tensor = blocks.one("recv", tensors)
        return self._message("recv", [], [tensor], [tensor], None, tag)

    def _message(
        self,
        what: str,
        send: list[Tensor],
        recv: list[Tensor],
        results: list[Tensor],
        peer: int | None,
        tag: int,
    ) -> Work | None:
        call = self._communicator.message
        return self._submit(what, call, send, recv, results, peer, tag, self._timeout_s)
