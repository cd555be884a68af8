"""Life of a process group: start-up ways, destruction, doing it again."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])


def again(rank, size):
    import stepccl

    # A store that outlives the groups. The file of a FileStore is removed by whoever lets go of it
    # last, maybe after another rank has opened it again.
    port = torch.zeros(1, dtype=torch.int64)
    limit = timedelta(seconds=30)
    store = None
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, size, is_master=True, timeout=limit, wait_for_workers=False)
        port += store.port
    dist.broadcast(port, 0)
    store = store or dist.TCPStore("127.0.0.1", port.item(), size, is_master=False, timeout=limit)
    for turn in range(3):
        dist.destroy_process_group()
        assert stepccl.stats() == {}
        dist.init_process_group("stepccl", store=store, rank=rank, world_size=size, timeout=limit)
        value = torch.full((10,), turn + 1.0)
        dist.all_reduce(value)
        assert value.eq((turn + 1.0) * size).all()
    # The store goes with the process of rank 0.
    dist.barrier()


def test_destroy_and_initialise_again_on_the_same_store(own_world):
    own_world(2).run(again)


SCRIPT = """
import os, torch
{imports}
torch.distributed.init_process_group(backend="stepccl", init_method="env://")
value = torch.ones(1000)
torch.distributed.all_reduce(value)
assert value.eq(torch.distributed.get_world_size()).all()
torch.distributed.destroy_process_group()
print("good rank", os.environ["RANK"])
"""


def torchrun(tmp_path, script, size=2, **environment):
    path = tmp_path / "script.py"
    path.write_text(script)
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}", path],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "imports",
    ["import stepccl"]
    + [
        pytest.param(
            "", marks=pytest.mark.skipif(TORCH < (2, 14), reason="entry points came with torch 2.14")
        )
    ],
    ids=["imported", "by entry point"],
)
def test_torchrun(tmp_path, imports):
    done = torchrun(tmp_path, SCRIPT.format(imports=imports))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("good rank") == 2, done.stdout


def test_distributed_debug_mode(tmp_path):
    script = SCRIPT.format(imports="import stepccl")
    done = torchrun(tmp_path, script, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert done.returncode == 0, done.stderr


def test_one_rank(own_world):
    own_world(1).run(alone)


def alone(rank, size):
    value = torch.arange(5.0)
    dist.all_reduce(value)
    dist.all_gather_into_tensor(gathered := torch.empty(5), value)
    dist.barrier()
    assert torch.equal(gathered, torch.arange(5.0))


WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "torch" else real(name, package)
import stepccl
stepccl.configure(buffer_size="1MiB")
assert stepccl.stats() == {} and stepccl.__version__
try:
    stepccl._register()
except ImportError:
    print("good")
"""


def test_import_without_torch():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "good", done.stderr
