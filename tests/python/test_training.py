"""Training through torch's own clients gives what gloo gives."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

STEPS = 3


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def data(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(16, 64, generator=generator), torch.randint(0, 10, (16,), generator=generator)


def train(rank, net, optimizer):
    for step in range(STEPS):
        inputs, labels = data(rank, step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()


def ddp(rank, size, hook):
    net = nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.01)
    if hook:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        net.register_comm_hook(None, default_hooks.bf16_compress_hook)
    train(rank, net, torch.optim.SGD(net.parameters(), lr=0.1))
    return [p.detach().numpy() for p in net.parameters()]


def largest_difference(left, right):
    return max(abs(a - b).max() for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("hook", [False, True], ids=["plain", "bf16 hook"])
def test_ddp_equals_gloo(world, hook):
    ours = world(2).run(ddp, hook)
    assert largest_difference(ours[0], ours[1]) == 0
    theirs = world(2, "gloo").run(ddp, hook)
    # Two numbers are added in one way only, so plain float32 is equal to the bit; the hook rounds.
    assert largest_difference(ours[0], theirs[0]) <= (1e-2 if hook else 0)


def fsdp(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net = model()
    mesh = init_device_mesh("cpu", (size,))
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    train(rank, net, torch.optim.SGD(net.parameters(), lr=0.1))
    return [p.full_tensor().detach().numpy() for p in net.parameters()]


def test_fsdp2_equals_gloo(world):
    ours, theirs = world(2).run(fsdp), world(2, "gloo").run(fsdp)
    assert largest_difference(ours[0], theirs[0]) <= 1e-6


def tensor_parallel(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (size,))
    net = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    inputs, labels = data(0, 0)
    loss = nn.functional.cross_entropy(net(inputs), labels)
    loss.backward()
    return loss.item()


def test_tensor_parallel_equals_one_process(world):
    inputs, labels = data(0, 0)
    want = nn.functional.cross_entropy(model()(inputs), labels).item()
    for loss in world(2).run(tensor_parallel):
        assert loss == pytest.approx(want, rel=1e-5)


def checkpoint(rank, size, folder):
    import torch.distributed.checkpoint as dcp

    dcp.save({"weights": torch.arange(8.0)}, checkpoint_id=folder)
    loaded = {"weights": torch.zeros(8)}
    dcp.load(loaded, checkpoint_id=folder)
    assert torch.equal(loaded["weights"], torch.arange(8.0))
    dist.barrier()


def test_distributed_checkpoint(world, tmp_path):
    world(2).run(checkpoint, str(tmp_path / "checkpoint"))
