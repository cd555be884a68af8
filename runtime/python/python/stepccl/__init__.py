"""Collective communication on DMA engines.

With torch::

    import torch, stepccl
    torch.distributed.init_process_group(backend="stepccl", init_method="env://")

Importing this module registers the backend. From torch 2.14 on, torch finds it without the import.
Without torch the settings, the errors and the extension module ``stepccl._core`` still work.
"""

from importlib.util import find_spec

from . import live
from ._core import version as _version
from .config import configure, enable_hbm_defrag, enable_paging, set_pipeline_depth
from .errors import (
    AbortedError,
    Error,
    ForkedError,
    NotSupportedError,
    PeerLostError,
    RefusedError,
    TimeoutError,
)
from .flight import dump, trace

__all__ = [
    "AbortedError",
    "Error",
    "ForkedError",
    "NotSupportedError",
    "PeerLostError",
    "RefusedError",
    "TimeoutError",
    "__version__",
    "configure",
    "dump",
    "enable_hbm_defrag",
    "enable_paging",
    "set_pipeline_depth",
    "stats",
    "trace",
]

__version__: str = _version()


def stats() -> dict[str, dict[str, object]]:
    """Counters of every communicator of this process that is not destroyed, by its name.

    The counters are those of ``stepccl._core.Communicator.stats``: bytes moved, operations,
    staging memory in bytes, the engine, and how often each algorithm ran.
    """
    return live.stats()


def _register() -> None:
    """Register the backend with torch.distributed; a second call does nothing.

    Raises ImportError where torch, or torch.distributed in it, is missing.
    """
    from .backend import register

    register()


if find_spec("torch") is not None:
    try:
        _register()
    except ImportError as _error:
        import warnings

        # A torch that does not import is its owner's problem to see, not a reason to refuse the
        # parts that do without it.
        warnings.warn(f"stepccl: backend not registered with torch: {_error}", stacklevel=2)
