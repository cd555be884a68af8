"""What the settings do on this machine: prints the tables of Documentation/tuning.md.

    cargo build --release -p stepccl-cli
    chrt -f 10 python3 tests/perf/tuning.py [--stepccl PATH] [--rounds N] [--only TITLE]

Every row is one operation and size. Its settings are measured in turns, several rounds over, each
with two processes of `stepccl bench`; a figure is the median of the rounds. A column shows how many
times as fast as without the setting; above 1 the setting is faster.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120
KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Way:
    """Settings that are measured together."""

    title: str
    variables: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """One table: the first way is what the others are compared with."""

    title: str
    cases: tuple[tuple[str, int], ...]
    ways: tuple[Way, ...]


def _of(name: str, *values: str, **more: str) -> tuple[Way, ...]:
    return tuple(Way(value, {f"STEPCCL_{name}": value, **more}) for value in values)


NONE = Way("default")
STAGED = Way("default, staged", {"STEPCCL_SINGLE_COPY": "off"})
SMALL, PAGE, CACHE, MEMORY = 8, 64 * KIB, MIB, 16 * MIB
PARTS = (
    Part(
        "STEPCCL_ALGORITHM",
        tuple(("all_reduce", size) for size in (8, 512, 4 * KIB, 16 * KIB, PAGE, CACHE, MEMORY)),
        (NONE, *_of("ALGORITHM", "direct", "two_shot", "ring", "recursive", "tree")),
    ),
    Part(
        "STEPCCL_SINGLE_COPY",
        tuple(
            (name, size)
            for name in ("all_gather", "all_to_all", "broadcast")
            for size in (16 * KIB, PAGE, CACHE, MEMORY)
        ),
        (NONE, *_of("SINGLE_COPY", "off")),
    ),
    Part(
        "STEPCCL_DMA_CONCURRENCY",
        tuple((name, size) for name in ("all_reduce", "all_gather") for size in (PAGE, CACHE, MEMORY)),
        (STAGED, *_of("DMA_CONCURRENCY", "1", "2", STEPCCL_SINGLE_COPY="off")),
    ),
    Part(
        "STEPCCL_PIPELINE_DEPTH",
        tuple((name, size) for name in ("all_reduce", "all_gather") for size in (CACHE, MEMORY)),
        (STAGED, *_of("PIPELINE_DEPTH", "1", "2", "4", "8", STEPCCL_SINGLE_COPY="off")),
    ),
    Part(
        "STEPCCL_PAGE_SIZE",
        tuple(("all_reduce", size) for size in (CACHE, MEMORY)),
        (NONE, *_of("PAGE_SIZE", "16KiB", "64KiB", "256KiB", "1MiB")),
    ),
    Part(
        "STEPCCL_BUFFER_SIZE",
        tuple(("all_reduce", size) for size in (PAGE, CACHE, MEMORY)),
        (NONE, *_of("BUFFER_SIZE", "64KiB", "256KiB", "1MiB", "16MiB")),
    ),
    Part("STEPCCL_FLIGHT_RECORDS", (("all_reduce", SMALL),), (NONE, *_of("FLIGHT_RECORDS", "0"))),
    Part(
        "cores of the ranks",
        (("all_reduce", SMALL), ("all_reduce", CACHE)),
        (NONE, Way("not bound", options=("--no-bind",))),
    ),
    Part(
        "STEPCCL_ENGINE",
        (("all_reduce", SMALL), ("all_reduce", CACHE), ("all_reduce", MEMORY)),
        (NONE, *_of("ENGINE", "tcp")),
    ),
)


def calls(size: int) -> int:
    """Enough for some 10 ms, and for a mean of a few hundred short ones."""
    return max(6, min(20_000, 64 * MIB // max(size, 4 * KIB)))


def measure(stepccl: Path, operation: str, size: int, way: Way) -> float:
    """Microseconds of a call."""
    count = calls(size)
    command = [str(stepccl), "bench", operation, "-b", str(size), "-e", str(size)]
    command += ["-n", str(count), "-w", str(count // 4 + 2), "-c", "0", "--json", *way.options]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STEPCCL_")}
    run = subprocess.run(
        command, env=clean | way.variables, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(f"{way.title}: {' '.join(command)}: {run.stderr}")
    row = json.loads(run.stdout.splitlines()[-1])
    # A broadcast has no form with an output apart.
    form = row["out_of_place"] or row["in_place"]
    return float(form["time_us"])


def table(part: Part, figures: dict[tuple[str, int], list[list[float]]]) -> Iterator[str]:
    """Markdown. `figures` has the times of each way for each case."""
    first, *others = part.ways
    yield f"### {part.title}"
    yield ""
    yield f"| operation | bytes | {first.title}, us | " + " | ".join(w.title for w in others) + " |"
    yield "|---|---|---|" + "---|" * len(others)
    for (operation, size), ways in figures.items():
        base, *rest = [statistics.median(times) for times in ways]
        ratios = " | ".join(f"{base / time:.2f}" for time in rest)
        yield f"| {operation} | {bytes_text(size)} | {base:.3g} | {ratios} |"
    yield ""


def bytes_text(size: int) -> str:
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--stepccl", type=Path, default=target / "release" / "stepccl")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="parts with this in their title")
    options = parser.parse_args()
    parts = [part for part in PARTS if options.only in part.title]
    if not options.stepccl.exists() or not parts or options.rounds < 1:
        print(f"no {options.stepccl}, no part with {options.only!r}, or no round", file=sys.stderr)
        return 2
    for part in parts:
        figures: dict[tuple[str, int], list[list[float]]] = {}
        for case in part.cases:
            figures[case] = [[] for _ in part.ways]
            for turn in range(options.rounds):
                # Who is first changes.
                for i in range(len(part.ways)):
                    at = (turn + i) % len(part.ways)
                    figures[case][at].append(measure(options.stepccl, *case, part.ways[at]))
        print("\n".join(table(part, figures)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
