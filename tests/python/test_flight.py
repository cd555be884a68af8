"""What dump() and trace() show of a process."""

import json
import threading

import torch
import torch.distributed as dist
from ranks import say, wait_for


def after_some(rank, size, folder):
    import stepccl

    count = torch.randint(2, 5000, (1,), generator=torch.Generator().manual_seed(5)).item()
    dist.barrier()
    dist.all_reduce(torch.ones(count, dtype=torch.float64), dist.ReduceOp.MAX)
    dist.broadcast(torch.ones(3, dtype=torch.int32), 1)
    if rank == 0:
        dist.send(torch.ones(5), 1)
    elif rank == 1:
        dist.recv(torch.empty(5), 0)
    text = stepccl.dump()
    assert f"rank {rank} of {size}" in text, text
    for line in ("all_reduce max double", "broadcast int32", "barrier"):
        assert line in text, text
    assert str(count * 8) in text, text
    assert ("send with 1" in text) == (rank == 0) and ("recv with 0" in text) == (rank == 1), text
    # So many operations, the newest.
    assert "all_reduce" not in stepccl.dump(operations=1) or rank > 1, text
    path = f"{folder}/{rank}.json"
    made = stepccl.trace(path)
    with open(path) as file:
        assert json.load(file) == made
    events = [event for event in made["traceEvents"] if event["ph"] == "X"]
    reduced = [event for event in events if event["name"] == "all_reduce"]
    assert [event["args"]["bytes"] for event in reduced] == [count * 8]
    assert all(event["dur"] >= 0 for event in events)
    names = {event["name"] for event in events}
    assert {"barrier", "all_reduce", "broadcast"} <= names, names
    assert ("send" in names) == (rank == 0) and ("recv" in names) == (rank == 1)


def test_they_show_the_last_operations(own_world, tmp_path):
    own_world(3).run(after_some, str(tmp_path))


def while_it_hangs(rank, size):
    import stepccl

    if rank == 1:
        wait_for("seen")
        dist.all_reduce(torch.ones(4))
        return None
    seen = []

    def look():
        # The wait of the other thread shows after a moment.
        while not seen or "waits for rank 1" not in " ".join(seen[-1].split()):
            seen[:] = [stepccl.dump()]
            lines = [line.split() for line in seen[0].splitlines()]
            if any(line[:2] == ["#0", "all_reduce"] and line[-2:] == ["rank", "1"] for line in lines):
                break
        say("seen")

    threading.Thread(target=look, daemon=True).start()
    dist.all_reduce(torch.ones(4))
    return seen[0]


def test_a_dump_while_it_hangs_says_who_is_waited_for(own_world):
    text = own_world(2).run(while_it_hangs)[0]
    assert "running" in text, text


def without_a_group():
    import stepccl

    assert stepccl.stats() == {}
    assert isinstance(stepccl.dump(), str)
    assert isinstance(stepccl.trace()["traceEvents"], list)


def test_they_work_without_a_group():
    without_a_group()
