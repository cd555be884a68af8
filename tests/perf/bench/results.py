"""The file of a run: what was measured, on which machine, as one JSON object.

{
  "format": 1, "date", "commit", "ranks", "dtype", "quick", "seconds",
  "machine": {"processor", "cores", "memory_bytes", "kernel"},
  "contenders": {name: {"label", "level", "library"}},
  "copy_rates": [{"bytes", "processes", "gb_per_s"}],
  "rows": [{"level", "operation", "bytes", "times": {name: {"median_us", "min_us", "p90_us", "samples"}}}],
  "failures": [{"contender", "operation", "bytes", "message"}]
}
"""

import datetime
import json
import os
import platform
import subprocess

from . import catalogue
from .builders import ROOT

FORMAT = 1


class ResultError(Exception):
    """A file that is no result of this program; the message names it and the next step."""


def machine():
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1] for line in file if line.startswith("model name")]
    return {
        "processor": " ".join(models[0].split()) if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
    }


def commit():
    """The commit that is measured, marked where files differ from it."""
    command = ["git", "-C", ROOT, "describe", "--always", "--dirty=+changes", "--exclude=*"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def new(ranks, quick):
    now = datetime.datetime.now(datetime.UTC)
    return {
        "format": FORMAT,
        "date": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "ranks": ranks,
        "dtype": "f32",
        "quick": quick,
        "seconds": 0,
        "machine": machine(),
        "contenders": {},
        "copy_rates": [],
        "rows": [],
        "failures": [],
    }


def save(result, path):
    """Write the file in one step, so that nobody reads half of it."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.replace(path)


def load(path):
    try:
        result = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ResultError(f"{path} cannot be read: {error}; make one with: make bench") from error
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        raise ResultError(f"{path} is no result of format {FORMAT}; make one with: make bench")
    return result


def copy_rates(result, nbytes):
    """GB/s of each process by the number that copy at once, at the measured size next to `nbytes`."""
    rates = {}
    for rate in result["copy_rates"]:
        distance = abs(rate["bytes"] - nbytes)
        known = rates.get(rate["processes"])
        if known is None or distance < known[0]:
            rates[rate["processes"]] = (distance, rate["gb_per_s"])
    return {processes: rate for processes, (_, rate) in rates.items()}


def ours_and_peer(row):
    """Medians in microseconds of ours and of the better peer, None where one is missing."""
    ours = catalogue.OURS[row["level"]]
    times = {name: time["median_us"] for name, time in row["times"].items()}
    peers = [us for name, us in times.items() if name != ours]
    return times.get(ours), min(peers, default=None)


def ratio(row):
    """How many times as fast as the better peer we are; None where one is missing."""
    ours, peer = ours_and_peer(row)
    return peer / ours if ours and peer else None
