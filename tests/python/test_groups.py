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


DETAIL = """
import torch, torch.distributed as dist, stepccl
dist.init_process_group("stepccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
mine = torch.arange(6.0) + rank
total = torch.arange(6.0) * ranks + sum(range(ranks))
everyone = [torch.arange(6.0) + r for r in range(ranks)]
new = lambda: [torch.empty(6) for _ in range(ranks)]

dist.all_reduce(value := mine.clone())
assert value.equal(total)
work = dist.all_reduce(value := mine.clone(), dist.ReduceOp.MAX, async_op=True)
work.wait()
assert value.equal(everyone[-1])
dist.broadcast(value := mine.clone(), 1)
assert value.equal(everyone[1])
dist.reduce(value := mine.clone(), 0)
assert rank or value.equal(total)
dist.all_gather(got := new(), mine)
assert torch.stack(got).equal(torch.stack(everyone))
dist.all_gather_into_tensor(got := torch.empty(6 * ranks), mine)
assert got.equal(torch.cat(everyone))
dist.reduce_scatter(got := torch.empty(6), [mine + r for r in range(ranks)])
assert got.equal(total + rank * ranks)
dist.reduce_scatter_tensor(got := torch.empty(6), torch.cat([mine + r for r in range(ranks)]))
assert got.equal(total + rank * ranks)
dist.all_to_all_single(got := torch.empty(6), mine)
assert got.equal(torch.cat([e.chunk(ranks)[rank] for e in everyone]))
dist.all_to_all(got := new(), [mine + 10 * r for r in range(ranks)])
assert torch.stack(got).equal(torch.stack(everyone) + 10 * rank)
dist.gather(mine, got := new() if rank == 0 else None)
assert rank or torch.stack(got).equal(torch.stack(everyone))
dist.scatter(got := torch.empty(6), everyone if rank == 0 else None)
assert got.equal(everyone[rank])
dist.send(mine, 1) if rank == 0 else dist.recv(got, 0)
assert rank == 0 or got.equal(everyone[0])
dist.send(mine, 1) if rank == 0 else dist.recv(got)
both = [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)]
[work.wait() for work in dist.batch_isend_irecv(both)]
assert got.equal(everyone[1 - rank])
dist.all_gather_object(objects := [None] * ranks, {"rank": rank})
assert [o["rank"] for o in objects] == list(range(ranks))
dist.barrier()
group = dist.new_group([0, 1])
dist.all_reduce(value := mine.clone(), group=group)
assert value.equal(total)
print("all good", flush=True)
try:
    dist.all_reduce(mine) if rank == 0 else dist.broadcast(mine, 0)
    dist.barrier()
except RuntimeError as error:
    text = str(error).lower()
    assert "allreduce" in text.replace("_", "") and "broadcast" in text, text
    print("found out", flush=True)
"""


def test_distributed_debug_mode(tmp_path):
    """On torch 2.14 and newer torch compares all calls beside us; before, the mode changes nothing."""
    done = torchrun(tmp_path, DETAIL, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert done.stdout.count("all good") == 2 and done.stdout.count("found out") == 2, done.stderr
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
