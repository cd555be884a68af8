"""The flight record of this process: what its communicators did last."""

import json
from pathlib import Path
from typing import Any

from . import _core


def dump(operations: int = 32) -> str:
    """Where each communicator of this process is, and its last operations, as text.

    Reads memory only: it may be called while an operation hangs. `stepccl status` shows the same
    of all processes.
    """
    return _core.dump(operations)


def trace(path: str | Path | None = None) -> dict[str, Any]:
    """The last operations of this process as a Chrome trace, also written to `path` if given.

    Its times are those of torch.profiler; load both at https://ui.perfetto.dev.
    """
    text = _core.trace_json()
    if path is not None:
        Path(path).write_text(text)
    made: dict[str, Any] = json.loads(text)
    return made
