"""Settings: what is accepted, what is refused and how, what it changes."""

import math

import pytest
import stepccl
import torch
import torch.distributed as dist
from stepccl import config


@pytest.fixture(autouse=True)
def _clean():
    config.reset()
    yield
    config.reset()


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [(65536, 65536), ("64KiB", 65536), ("1M", 1 << 20), ("256MB", 256_000_000), (" 1 gib ", 1 << 30)],
)
def test_sizes_are_bytes(given, bytes_):
    stepccl.configure(buffer_size=given)
    assert config.snapshot() == {"buffer_size": bytes_}


@pytest.mark.parametrize(
    "given", [0, -1, 65535, (1 << 30) + 1, "", "MB", "1.5MB", "8 XB", "9" * 30, True, 1e6, b"1M", [1], "-1MB"]
)
def test_bad_sizes_are_refused(given):
    with pytest.raises(ValueError, match="buffer_size = .*must be 65536 to"):
        stepccl.configure(buffer_size=given)
    assert config.snapshot() == {}


@pytest.mark.parametrize("given", [0, 1, "yes"])
def test_a_switch_is_true_or_false(given):
    with pytest.raises(ValueError, match="enable_dma"):
        stepccl.configure(enable_dma=given)


@pytest.mark.parametrize("given", [-0.1, 1.1, math.nan, math.inf, "0.1", True])
def test_a_ratio_is_from_0_to_1(given):
    with pytest.raises(ValueError, match="hbm_cache_ratio = .*from 0 to 1"):
        stepccl.configure(hbm_cache_ratio=given)


def test_device_memory_is_said_to_be_missing():
    with pytest.raises(stepccl.NotSupportedError, match="no device memory"):
        stepccl.configure(hbm_cache_ratio=0.1, buffer_size="1MiB")
    assert config.snapshot() == {}, "nothing is changed after an error"
    stepccl.configure(hbm_cache_ratio=0)
    with pytest.raises(stepccl.NotSupportedError, match="no device memory"):
        stepccl.enable_hbm_defrag(interval=500)
    for bad in (0, -1, math.nan, "500", 4e6):
        with pytest.raises(ValueError, match="interval"):
            stepccl.enable_hbm_defrag(interval=bad)


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'buffer_size'"):
        stepccl.configure(bufer_size=1)
    with pytest.raises(TypeError, match="settings are"):
        stepccl.configure(zzz=1)


@pytest.mark.parametrize("given", [0, 65, -1, 1.0, "4", True, None])
def test_a_depth_is_1_to_64(given):
    with pytest.raises(ValueError, match="1 to 64"):
        stepccl.set_pipeline_depth(given)
    with pytest.raises(ValueError, match="1 to 64"):
        stepccl.enable_paging(page_size="1MiB", prefetch_depth=given)
    assert config.snapshot() == {}


def test_pages_and_depth_are_kept():
    stepccl.enable_paging(page_size="128MB", prefetch_depth=2)
    stepccl.set_pipeline_depth(4)
    assert config.snapshot() == {"page_size": 128_000_000, "pipeline_depth": 4}
    with pytest.raises(ValueError, match="page_size"):
        stepccl.enable_paging(page_size=63)


def with_settings(rank, size, folder, settings):
    """A group made with these settings: right results, and its counters."""
    config.reset()
    call, keywords = settings
    getattr(stepccl, call)(**keywords)
    group = dist.new_group(list(range(size)))
    config.reset()
    values = torch.arange(1 << 20, dtype=torch.float64) * (rank + 1)
    dist.all_reduce(values, group=group)
    assert torch.equal(values, torch.arange(1 << 20, dtype=torch.float64) * (size * (size + 1) // 2))
    counters = list(stepccl.stats().values())[-1]
    dist.destroy_process_group(group)
    return counters


@pytest.mark.parametrize(
    "settings",
    [
        ("configure", {"buffer_size": "64KiB"}),
        ("configure", {"buffer_size": "16MiB"}),
        ("configure", {"enable_dma": False}),
        ("configure", {"enable_dma": True}),
        ("set_pipeline_depth", {"depth": 1}),
        ("set_pipeline_depth", {"depth": 64}),
        ("enable_paging", {"page_size": "4KiB", "prefetch_depth": 3}),
        ("enable_paging", {"page_size": "128MB", "prefetch_depth": 2}),
    ],
    ids=str,
)
def test_settings_keep_the_results(world, tmp_path, settings):
    for counters in world(2).run(with_settings, str(tmp_path), settings):
        assert counters["bytes_moved"] > 0
        if "buffer_size" in settings[1]:
            limit = config.size("buffer_size", settings[1]["buffer_size"], config.BUFFER_RANGE)
            assert 0 < counters["staging_bytes"] <= limit
