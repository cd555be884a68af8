"""Measure StepCCL and its peers in one run, or read what a run has measured.

Writes build/bench/DATE.json, a table (.md) and a plot (.svg) beside it, and says which bars hold.
Documentation/benchmarks.md says what is measured and how to read it.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import bars, builders, catalogue, measure, results, table
from .builders import BUILD, PERF, BuildError, say
from .progress import Progress
from .results import ResultError
from .worlds import World, WorldError

FAILED, MISSED = 2, 1


class Worlds:
    """The worlds of a level by name, each started when it is first asked for."""

    def __init__(self, names, ranks, on_start):
        self.names, self.ranks, self.on_start = names, ranks, on_start
        self.commands, self.running = {}, {}

    def build(self):
        for name in self.names:
            say(f"building {name}")
            self.commands[name] = builders.contender(name, self.ranks)

    def get(self, name):
        if name not in self.running:
            self.running[name] = World(name, *self.commands[name], self.ranks)
            self.on_start(name, self.running[name].library)
        return self.running[name]

    def drop(self, name):
        world = self.running.pop(name, None)
        if world:
            world.end()

    def end(self):
        for name in list(self.running):
            self.drop(name)


def weight(operation, nbytes):
    """About how long a size takes, for the progress: turns are bounded, large calls are not."""
    return 1.0 + nbytes / (8 << 20)


def copy_rates(worlds, sizes, ranks, effort, result):
    """Measure how fast cores copy, on the buffers that the operations use."""
    if "openmpi" not in worlds.names:
        return
    for nbytes in [size for size in sizes if size >= catalogue.COPY_FROM] or [max(sizes)]:
        for operation, processes in (("copy_one", 1), ("copy", ranks)):
            turn = measure.Turn(worlds.get("openmpi"), operation, nbytes, effort)
            for _ in range(effort.rounds):
                turn.take()
            # The slowest of each sample; the ranks copy equally much.
            us = measure.summary(turn.samples, 1.0)["median_us"]
            result["copy_rates"].append({"bytes": nbytes, "processes": processes, "gb_per_s": round(nbytes / us / 1e3, 2)})


def measure_level(level, options, result, path, progress):
    names = [contender.name for contender in catalogue.contenders(level)]
    effort = measure.QUICK if options.quick else measure.FULL

    def started(name, library):
        label = next(contender.label for contender in catalogue.CONTENDERS if contender.name == name)
        result["contenders"][name] = {"label": label, "level": level, "library": library}

    worlds = Worlds(names, options.ranks, started)
    worlds.build()
    try:
        if level == "native":
            copy_rates(worlds, options.sizes, options.ranks, effort, result)
        for operation in options.operations:
            for nbytes in catalogue.sizes_of(operation, options.sizes):
                what = f"{level} {operation} {catalogue.show_size(nbytes)}"
                progress.step(what, weight(operation, nbytes))

                def fail(name, message, operation=operation, nbytes=nbytes):
                    progress.note(f"warning: {name} {operation} {catalogue.show_size(nbytes)}: {message}")
                    failure = {"contender": name, "operation": operation, "bytes": nbytes, "message": message}
                    result["failures"].append(failure)

                times = measure.size(worlds, operation, nbytes, effort, fail)
                result["rows"].append({"level": level, "operation": operation, "bytes": nbytes, "times": times})
            # What there is stays there if the run is ended.
            results.save(result, path)
    finally:
        worlds.end()


def show(result, path, with_table):
    """Write table and plot beside the result, and say what holds."""
    document = path.with_suffix(".md")
    document.write_text("\n".join(table.lines(result)) + "\n")
    python = builders.environment("plot") / "bin" / "python"
    builders.run([python, "-m", "bench.plot", path, path.with_suffix(".svg")], env=dict(os.environ, PYTHONPATH=str(PERF)))
    if with_table:
        print(document.read_text())
    for line in bars.lines(result):
        print(line)
    say(f"{path}, {document.name}, {path.with_suffix('.svg').name}")
    return 0 if all(verdict.holds or not verdict.rows for verdict in bars.verdicts(result)) else MISSED


def run(options):
    result = results.new(options.ranks, options.quick)
    path = options.out or BUILD / f"{result['date'][:19].replace(':', '-')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    total = sum(
        weight(operation, nbytes)
        for operation in options.operations
        for nbytes in catalogue.sizes_of(operation, options.sizes)
    )
    progress = Progress(total * len(options.levels))
    for level in options.levels:
        measure_level(level, options, result, path, progress)
    progress.end()
    result["seconds"] = round(time.monotonic() - started)
    results.save(result, path)
    return show(result, path, with_table=True)


def latest():
    """The newest result of this checkout."""
    found = sorted(BUILD.glob("*.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise ResultError(f"no result in {BUILD}; make one with: make bench")
    return found[-1]


def listed(names):
    def parse(text):
        chosen = text.split(",")
        wrong = [name for name in chosen if name not in names]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not one of: {', '.join(names)}")
        return chosen

    return parse


def sizes(text):
    try:
        return sorted({catalogue.parse_size(size) for size in text.split(",")})
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    quick = os.environ.get("QUICK", "") not in ("", "0")
    parser.add_argument("--quick", action="store_true", default=quick, help="some 3 minutes: few sizes (or QUICK=1)")
    parser.add_argument("--operations", type=listed(catalogue.OPERATIONS), default=catalogue.OPERATIONS, help="separated by commas")
    parser.add_argument("--sizes", type=sizes, help="separated by commas, with K, M, G (default: 8 B to 256 MiB)")
    parser.add_argument("--levels", type=listed(list(catalogue.LEVELS)), default=list(catalogue.LEVELS), help="native, torch")
    parser.add_argument("--ranks", type=int, choices=range(2, 65), default=2, metavar="N", help="ranks of this machine (default 2)")
    parser.add_argument("--out", type=Path, help="the result (default: build/bench/DATE.json)")
    parser.add_argument("--read", nargs="?", const="", metavar="FILE", help="measure nothing: table, plot and bars of a result (default: the newest)")
    options = parser.parse_args()
    if options.sizes is None:
        options.sizes = catalogue.QUICK_SIZES if options.quick else catalogue.FULL_SIZES
    return options


def main():
    # Ended by a signal, the worlds end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = arguments()
    try:
        if options.read is None:
            return run(options)
        path = Path(options.read) if options.read else latest()
        return show(results.load(path), path, with_table=False)
    except (BuildError, ResultError, WorldError) as error:
        say(f"error: {error}")
        return FAILED
    except KeyboardInterrupt:
        say("ended; what was measured is in the newest file of build/bench")
        return 128 + signal.SIGINT
    except subprocess.SubprocessError as error:
        say(f"error: {error}")
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
