"""The benchmark's own parts, on recorded data: table, bars, progress, and a world that misbehaves."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bench import bars, catalogue, measure, results, table  # noqa: E402
from bench.__main__ import Worlds  # noqa: E402
from bench.progress import Progress  # noqa: E402
from bench.worlds import World, WorldError  # noqa: E402

RANK = """
import os, socket, sys, time
behaviour = os.environ["BEHAVIOUR"]
if behaviour == "die":
    sys.exit("no such library")
rank = os.environ["BENCH_RANK"]
driver = socket.socket(socket.AF_UNIX)
driver.connect(os.environ["BENCH_SOCKET"])
lines = driver.makefile("rw")
print("hello", rank, "Fake   1.0", file=lines, flush=True)
for line in lines:
    words = line.split()
    if words[0] == "quit":
        break
    if behaviour == "hang":
        time.sleep(600)
    if behaviour == "wrong" and words[0] == "check" and rank == "1":
        answer = "error it is wrong"
    elif words[0] == "check":
        answer = "ok"
    else:
        answer = "ok " + " ".join(str(1000 * (1 + int(rank)) + i) for i in range(int(words[5])))
    print(answer, file=lines, flush=True)
"""


def world(behaviour):
    return World("fake", [sys.executable, "-c", RANK], dict(os.environ, BEHAVIOUR=behaviour), 2)


def recorded(level="native", scale=1.0):
    """A result in which every operation of every size has a figure: ours `scale` us, a peer's 6 us."""
    result = results.new(2, True)
    ours, *peers = [contender.name for contender in catalogue.contenders(level)]
    for name in (ours, *peers):
        result["contenders"][name] = {"label": name, "level": level, "library": "x"}
    for processes in (1, 2):
        result["copy_rates"].append({"bytes": 16 << 20, "processes": processes, "gb_per_s": 10.0})
    for operation in catalogue.OPERATIONS:
        for nbytes in catalogue.sizes_of(operation, catalogue.QUICK_SIZES):
            times = {name: {"median_us": 6.0, "min_us": 6, "p90_us": 6, "samples": 3} for name in peers}
            times[ours] = {"median_us": scale, "min_us": 1, "p90_us": 1, "samples": 3}
            result["rows"].append({"level": level, "operation": operation, "bytes": nbytes, "times": times})
    return result


def verdict(result, words):
    (found,) = [found for found in bars.verdicts(result) if words in found.bar.words]
    return found


def test_samples_are_those_of_the_slowest_rank():
    assert measure.slowest(["1 5 3", "2 4 9"]) == [2, 5, 9]
    assert measure.summary([1000, 3000, 2000], 0.5)["median_us"] == 1.0


def test_a_world_answers_in_order_of_rank_and_leaves_nothing():
    fake = world("good")
    folder, pids = fake.folder, [process.pid for process in fake.processes]
    assert fake.library == "Fake 1.0"
    assert fake.command("measure x 8 0 1 2", 10) == ["1000 1001", "2000 2001"]
    fake.end()
    assert not folder.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_world_that_dies_says_why():
    with pytest.raises(WorldError, match="no such library"):
        world("die")


def test_a_world_that_hangs_is_ended_in_time():
    fake = world("hang")
    pids = [process.pid for process in fake.processes]
    start = time.monotonic()
    with pytest.raises(WorldError, match="did not answer in time"):
        fake.command("check x 8", 0.2)
    fake.end()
    assert time.monotonic() - start < 30
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_who_fails_is_left_out_and_the_others_are_measured():
    worlds = Worlds(["good", "wrong"], 2, lambda *_: None)
    for name in worlds.names:
        worlds.commands[name] = ([sys.executable, "-c", RANK], dict(os.environ, BEHAVIOUR=name))
    failures = []
    try:
        times = measure.size(worlds, "all_reduce", 8, measure.QUICK, lambda *failure: failures.append(failure))
    finally:
        worlds.end()
    assert set(times) == {"good"}
    assert times["good"]["samples"] == measure.QUICK.rounds * measure.QUICK.most_samples
    assert failures == [("wrong", "wrong: it is wrong")]


def test_a_ratio_is_that_to_the_better_peer():
    row = recorded()["rows"][0]
    row["times"]["mpich"]["median_us"] = 4.0
    assert results.ratio(row) == 4.0
    del row["times"]["stepccl"]
    assert results.ratio(row) is None


def test_bars_hold_at_their_limit_and_name_what_misses():
    result = recorded()
    assert verdict(result, "all_reduce, reduce_scatter to 1 KiB").holds
    row = next(row for row in result["rows"] if (row["operation"], row["bytes"]) == ("reduce_scatter", 1024))
    row["times"]["stepccl"]["median_us"] = 6 / 5
    assert verdict(result, "all_reduce, reduce_scatter to 1 KiB").holds
    row["times"]["stepccl"]["median_us"] = 6 / 4.9
    missed = verdict(result, "all_reduce, reduce_scatter to 1 KiB")
    assert not missed.holds
    assert [place[1:] for place in missed.misses] == [("reduce_scatter", 1024)]
    assert any("reduce_scatter 1 KiB: 4.90x" in line for line in bars.lines(result))


def test_a_figure_that_is_missing_does_not_hold():
    result = recorded()
    result["rows"][0]["times"] = {}
    found = verdict(result, "all_reduce, reduce_scatter to 1 KiB")
    assert found.missing == [("all_reduce", 8)]
    assert not found.holds
    assert any("all_reduce 8 B: no figure" in line for line in bars.lines(result))


def test_what_was_not_run_is_told():
    assert "not run  torch, every operation above 64 KiB" in bars.lines(recorded())
    torch = recorded("torch", 0.3)
    assert verdict(torch, "torch, every operation to 64 KiB").holds
    assert not verdict(torch, "all_reduce, reduce_scatter to 1 KiB").rows


def test_the_copy_bound_is_that_of_the_document():
    rates = {1: 10.0, 2: 5.0}
    assert catalogue.bound_us("all_gather", 10_000_000, 2, rates) == 2000
    assert catalogue.bound_us("broadcast", 10_000_000, 2, rates) == 1000
    assert catalogue.bound_us("all_reduce", 10_000_000, 2, rates) is None
    assert catalogue.bound_us("all_gather", 10_000_000, 3, rates) is None


def test_the_table_has_a_row_for_each_figure():
    result = recorded()
    result["failures"].append({"contender": "gloo", "operation": "barrier", "bytes": 0, "message": "gone"})
    lines = list(table.lines(result))
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 1 + len(result["rows"])
    assert len({row.count("|") for row in rows}) == 1
    assert "| all_reduce | 8 B | 1.000 | 6.000 | 6.000 | 6.00x |  |" in rows
    assert any("gloo, barrier 0 B: gone" in line for line in lines)


def test_results_come_back_and_others_are_refused(tmp_path):
    path = tmp_path / "run.json"
    results.save(recorded(), path)
    assert len(results.load(path)["rows"]) == len(recorded()["rows"])
    for text in ("", "[]", '{"format": 0}'):
        path.write_text(text)
        with pytest.raises(results.ResultError, match="make bench"):
            results.load(path)


def test_sizes_are_read_and_bad_ones_named():
    assert [catalogue.parse_size(text) for text in ("8", "64K", "1m", "1G")] == [8, 1 << 16, 1 << 20, 1 << 30]
    for text in ("", "0", "-1", "x", "1T", "1.5K"):
        with pytest.raises(ValueError, match="positive whole number"):
            catalogue.parse_size(text)


def test_progress_tells_what_is_left():
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(4, stream, lambda: now[0])
    progress.step("first", 1)
    now[0] = 30.0
    progress.step("second", 1)
    assert stream.getvalue().splitlines() == [
        "  0 % after 0:00: first",
        " 25 % after 0:30, about 1:30 left: second",
    ]


def plot_python():
    """A Python with matplotlib, where a benchmark has made one; it needs the network once."""
    from bench import builders

    try:
        return builders.environment("plot") / "bin" / "python"
    except builders.BuildError as error:
        pytest.skip(f"no environment for the plot: {error}")


def test_the_plot_is_the_same_for_the_same_result(tmp_path):
    path, python = tmp_path / "run.json", plot_python()
    results.save(recorded(), path)
    images = []
    for name in ("a.svg", "b.svg"):
        env = dict(os.environ, PYTHONPATH=str(Path(__file__).parent))
        subprocess.run([python, "-m", "bench.plot", path, tmp_path / name], check=True, env=env, timeout=120)
        images.append((tmp_path / name).read_bytes())
    assert images[0] == images[1]
    text = images[0].decode()
    assert text.lstrip().startswith("<?xml")
    for operation in catalogue.OPERATIONS:
        assert f">{operation}<" in text
    assert json.loads(path.read_text())["ranks"] == 2
