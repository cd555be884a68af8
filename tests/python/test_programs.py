"""What users of torch.distributed write, small, against gloo or one process on the same data."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

SIZE = 2


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))


def batch(rank):
    return torch.randn(4, 16, generator=torch.Generator().manual_seed(10 + rank))


def alone():
    """Two steps of one process on the batches of all ranks: what the ranks together must get."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        sum(model(batch(rank)).pow(2).mean() for rank in range(SIZE)).div(SIZE).backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def close(got, want):
    for left, right in zip(got, want, strict=True):
        torch.testing.assert_close(left, right)


def train(model, rank):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(batch(rank)).pow(2).mean().backward()
        optimizer.step()


def sharded(rank, size):
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (size,))
    model = network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, rank)
    close([parameter.full_tensor().detach() for parameter in model.parameters()], alone())


def hooked(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    model = nn.parallel.DistributedDataParallel(network())
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    train(model, rank)
    close([parameter.detach() for parameter in model.parameters()], alone())
    model = nn.parallel.DistributedDataParallel(network())
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    train(model, rank)
    for got, want in zip(model.parameters(), alone(), strict=True):
        torch.testing.assert_close(got.detach(), want, rtol=0.02, atol=0.02)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model = nn.parallel.DistributedDataParallel(network())
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    train(model, rank)
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    everyone = torch.empty(size * flat.numel())
    dist.all_gather_into_tensor(everyone, flat)
    close(everyone.chunk(size), [flat] * size)


def tensor_parallel(rank, size):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (size,))
    want = network()
    model = parallelize_module(network(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    torch.testing.assert_close(model(batch(0)), want(batch(0)))
    model(batch(0)).pow(2).sum().backward()
    want(batch(0)).pow(2).sum().backward()
    close([p.grad.full_tensor() for p in model.parameters()], [p.grad for p in want.parameters()])


def redistributed(rank, size):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(35.0).reshape(5, 7)
    tensor = distribute_tensor(whole, mesh, [Shard(0)])
    for placement in (Shard(1), Replicate(), Shard(0)):
        tensor = tensor.redistribute(mesh, [placement])
        assert torch.equal(tensor.full_tensor(), whole)
    assert (tensor @ tensor.T).full_tensor().equal(whole @ whole.T)


def meshes(rank, size):
    mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("outer", "inner"))
    value = torch.ones(4)
    dist.all_reduce(value, group=mesh["inner"].get_group())
    dist.all_reduce(value, group=mesh["outer"].get_group())
    assert value.eq(size).all()


def piped(rank, size):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    torch.manual_seed(5)
    layers = [nn.Linear(16, 16) for _ in range(size)]
    inputs, target = batch(0), batch(1)

    def loss(output, wanted):
        return (output - wanted).pow(2).mean()

    for schedule in (ScheduleGPipe, Schedule1F1B):
        for layer in layers:
            layer.zero_grad()
        stage = PipelineStage(layers[rank], rank, size, torch.device("cpu"))
        runs = schedule(stage, 2, loss_fn=loss)
        losses = []
        if rank == 0:
            runs.step(inputs)
        else:
            runs.step(target=target, losses=losses)
        got = layers[rank].weight.grad.clone()
        for layer in layers:
            layer.zero_grad()
        whole = nn.Sequential(*layers)
        for part, wanted in zip(inputs.chunk(2), target.chunk(2), strict=True):
            (loss(whole(part), wanted) / 2).backward()
        torch.testing.assert_close(got, layers[rank].weight.grad)


def saved(rank, size, folder):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(24.0).reshape(8, 3)
    state = {"sharded": distribute_tensor(whole, mesh, [Shard(0)]), "own": torch.full((2,), 7.0)}
    checkpoint.save(state, checkpoint_id=folder)
    # Read into other shards than were written.
    loaded = {"sharded": distribute_tensor(torch.zeros(8, 3), mesh, [Shard(1)]), "own": torch.zeros(2)}
    checkpoint.load(loaded, checkpoint_id=folder)
    assert torch.equal(loaded["sharded"].full_tensor(), whole) and loaded["own"].eq(7).all()


def objects(rank, size):
    everyone = [None] * size
    dist.all_gather_object(everyone, {"rank": rank, "long": "x" * (10 + 5000 * rank)})
    assert [(o["rank"], len(o["long"])) for o in everyone] == [(r, 10 + 5000 * r) for r in range(size)]
    told = [("from", rank), None] if rank == 1 else [None, None]
    dist.broadcast_object_list(told, 1)
    assert told == [("from", 1), None]
    got = [None] * size if rank == 0 else None
    dist.gather_object(rank * 10, got, 0)
    assert rank != 0 or got == [10 * r for r in range(size)]
    mine = [None]
    dist.scatter_object_list(mine, [f"for {r}" for r in range(size)] if rank == 0 else None, 0)
    assert mine == [f"for {rank}"]
    if rank == 0:
        dist.send_object_list(["over", 1], 1)
    elif rank == 1:
        heard = [None, None]
        dist.recv_object_list(heard, 0)
        assert heard == ["over", 1]


def zero_optimizer(rank, size):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = nn.parallel.DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(batch(rank)).pow(2).mean().backward()
        optimizer.step()
    close([parameter.detach() for parameter in model.parameters()], alone())


def exchanged(rank, size):
    """A ring both ways, as pipelines and halo exchanges do."""
    after, before = (rank + 1) % size, (rank - 1) % size
    sent = [torch.full((n,), float(rank)) for n in (3, 70_000)]
    got = [torch.empty(n) for n in (3, 70_000)]
    turned = torch.full((6,), 9.0)[::2]
    operations = [dist.P2POp(dist.irecv, t, before) for t in got]
    operations += [dist.P2POp(dist.isend, t, after) for t in sent]
    operations += [dist.P2POp(dist.irecv, turned, after), dist.P2POp(dist.isend, sent[0], before)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert all(t.eq(before).all() for t in got) and turned.eq(after).all()


PROGRAMS = [
    sharded,
    hooked,
    tensor_parallel,
    redistributed,
    meshes,
    piped,
    objects,
    zero_optimizer,
    exchanged,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(world, program):
    world(SIZE).run(program)


def test_checkpoint_is_saved_and_loaded(world, tmp_path):
    world(SIZE).run(saved, str(tmp_path / "checkpoint"))
