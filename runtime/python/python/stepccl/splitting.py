"""torch's split of a group, for ranks that are in no part of it.

torch 2.14 and newer ask the backend for its part and cannot take None for an answer from one in
Python: the process would end. So it is not asked on those ranks.
"""

from collections.abc import Sequence
from typing import Any

from torch.distributed import ProcessGroup

from .life import NAME

_group: Any = ProcessGroup
_split_of_torch = _group.split_group


def _split_group(group: Any, ranks: Sequence[int], *args: Any, **options: Any) -> Any:
    if group.rank() in ranks:
        return _split_of_torch(group, ranks, *args, **options)
    # Backends that split together with all ranks of the group are still asked.
    wanted = options.pop("device_types", None) or group._device_types
    others = [device for device in wanted if group._get_backend(device).name() != NAME]
    if not others:
        return None
    return _split_of_torch(group, ranks, *args, device_types=others, **options)


def install() -> None:
    """Let torch's groups split so; a second call does nothing."""
    _group.split_group = _split_group
