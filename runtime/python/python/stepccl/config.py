"""Settings of communicators created later in this process.

A communicator takes the settings at its creation: a call after ``init_process_group`` changes
the groups made after it, not those that exist. Every rank of a group must have the same settings.
"""

import difflib
import math
import re
from typing import Any

from .errors import NotSupportedError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

BUFFER_RANGE = (64 * KIB, GIB)
PAGE_RANGE = (64, GIB)
DEPTH_RANGE = (1, 64)
INTERVAL_RANGE = (1, 3_600_000)

_KNOBS = ("buffer_size", "enable_dma", "hbm_cache_ratio")
_UNITS = {
    "": 1, "b": 1,
    "k": KIB, "kib": KIB, "kb": 10**3,
    "m": MIB, "mib": MIB, "mb": 10**6,
    "g": GIB, "gib": GIB, "gb": 10**9,
}  # fmt: skip
_NO_DEVICE_MEMORY = "the host engine of this build holds no device memory"

_settings: dict[str, Any] = {}


def configure(
    *,
    buffer_size: int | str | None = None,
    enable_dma: bool | None = None,
    hbm_cache_ratio: float | None = None,
    **unknown: object,
) -> None:
    """Change settings; one that is not given keeps its value.

    buffer_size
        Upper bound of the staging memory of a communicator on this rank: bytes, or text such as
        ``"8MiB"`` (1024-based) or ``"256MB"`` (1000-based); 64 KiB to 1 GiB. Without it, the
        ranks of a node share 8 MiB.
    enable_dma
        Whether copies may be given to DMA channels. Off, the cores move everything; the results
        are the same.
    hbm_cache_ratio
        Share of the device's memory for cached pages, 0 to 1. The engine of this build has no
        device memory, so only 0 is accepted.

    Raises ValueError naming the value and the rule, TypeError for an unknown setting,
    NotSupportedError for one that has no effect yet. After an error nothing is changed.
    """
    if unknown:
        raise TypeError(_unknown_message(next(iter(unknown))))
    changed: dict[str, Any] = {}
    if buffer_size is not None:
        changed["buffer_size"] = size("buffer_size", buffer_size, BUFFER_RANGE)
    if enable_dma is not None:
        if not isinstance(enable_dma, bool):
            raise ValueError(f"enable_dma = {enable_dma!r}: must be True or False")
        changed["enable_dma"] = enable_dma
    if hbm_cache_ratio is not None:
        ratio = _number("hbm_cache_ratio", hbm_cache_ratio, "a number from 0 to 1")
        if not 0 <= ratio <= 1:
            raise ValueError(f"hbm_cache_ratio = {hbm_cache_ratio!r}: must be a number from 0 to 1")
        if ratio > 0:
            raise NotSupportedError(
                f"hbm_cache_ratio = {hbm_cache_ratio!r}: {_NO_DEVICE_MEMORY}; leave it out, or 0"
            )
    _settings.update(changed)


def set_pipeline_depth(depth: int) -> None:
    """Pages in flight on a path, 1 to 64. Unset, the cost model chooses.

    Raises ValueError naming the value and the rule.
    """
    _settings["pipeline_depth"] = _whole("pipeline depth", depth, DEPTH_RANGE)


def enable_paging(*, page_size: int | str, prefetch_depth: int = 2) -> None:
    """Move messages page by page: `page_size` bytes of each block (64 B to 1 GiB, written as for
    ``configure``), `prefetch_depth` pages ahead (1 to 64).

    A page that does not fit into the staging that many times is cut to what fits. The pages ahead
    are the pipeline depth of paged messages; the later call of this and ``set_pipeline_depth``
    decides.

    Raises ValueError naming the value and the rule. After an error nothing is changed.
    """
    page = size("page_size", page_size, PAGE_RANGE)
    depth = _whole("prefetch_depth", prefetch_depth, DEPTH_RANGE)
    _settings["page_size"] = page
    _settings["pipeline_depth"] = depth


def enable_hbm_defrag(*, interval: float = 500) -> None:
    """Compact the page cache in device memory every `interval` milliseconds (1 to 3,600,000).

    Raises ValueError naming the value and the rule; NotSupportedError for a good value, since the
    engine of this build has no page cache in device memory.
    """
    low, high = INTERVAL_RANGE
    rule = f"a number of milliseconds from {low} to {high}"
    if not low <= _number("interval", interval, rule) <= high:
        raise ValueError(f"interval = {interval!r}: must be {rule}")
    raise NotSupportedError(f"interval = {interval!r}: {_NO_DEVICE_MEMORY}, so nothing to compact")


def snapshot() -> dict[str, Any]:
    """The settings as ``_core.Communicator`` takes them: what was set, nothing else."""
    return dict(_settings)


def reset() -> None:
    """Forget every setting of this process."""
    _settings.clear()


def size(name: str, value: object, limits: tuple[int, int]) -> int:
    """Bytes from a whole number or from text with a unit, within `limits`.

    Raises ValueError naming the value and the rule.
    """
    low, high = limits
    rule = f"must be {low} to {high} bytes, as a whole number or text such as '8MiB' or '256MB'"
    number = _parse_size(value)
    if number is None or not low <= number <= high:
        raise ValueError(f"{name} = {value!r}: {rule}")
    return number


def _parse_size(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    found = re.fullmatch(r"\s*([0-9]{1,19})\s*([a-zA-Z]*)\s*", value)
    factor = _UNITS.get(found[2].lower()) if found else None
    return int(found[1]) * factor if found and factor else None


def _number(name: str, value: object, rule: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name} = {value!r}: must be {rule}")
    return value


def _whole(name: str, value: object, limits: tuple[int, int]) -> int:
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} = {value!r}: must be a whole number from {low} to {high}")
    return value


def _unknown_message(name: str) -> str:
    near = difflib.get_close_matches(name, _KNOBS, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"settings are: {', '.join(_KNOBS)}"
    return f"unknown setting {name!r}; {hint}"
