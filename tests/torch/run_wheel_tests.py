"""Run torch's own distributed tests and compare the results with the expectation.

    python tests/torch/run_wheel_tests.py --backend stepccl --ranks 2 [TEST...]

The environment decides which torch it is. Shows each test as it ends. Fails for a test that failed
and is not expected to, and for one that passed or was skipped and is expected to fail.
"""

import argparse
import json
import os
import re
import sys
import time
import tomllib
import unittest
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.toml"
TEST_S = 60


@dataclass
class Result:
    """How one test ended: "passed", "skipped" or "failed", and why."""

    name: str
    outcome: str
    reason: str
    seconds: float


def last_line(text: str) -> str:
    """The line of a traceback that says what happened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Skip\w*)\b", line)]
    return (raised or lines or ["no message"])[-1][:300]


def end_ranks(ranks: list[Any]) -> None:
    """End what a test left; it may be deaf to a polite request."""
    for rank in ranks:
        rank.join(5)
        if rank.exitcode is None:
            rank.kill()
            rank.join(5)


def run_one(module: Any, name: str, logs: Path) -> Result:
    case = module.Distributed(name)
    ranks: list[Any] = []
    reason = ""
    tear_down = case.tearDown

    def keep_record() -> None:
        nonlocal reason
        folder = Path(os.environ["TEMP_DIR"])
        ranks.extend(case.processes)
        for process in ranks:
            process.terminate()
        end_ranks(ranks)
        if (folder / module.SKIP_REASON).exists():
            reason = (folder / module.SKIP_REASON).read_text()
        for rank in range(len(ranks)):
            parts = [folder / f"rank-{rank}.log", folder / f"{module.FAILURE}-{rank}"]
            text = "\n".join(part.read_text(errors="replace") for part in parts if part.exists())
            (logs / f"{name}.{rank}.log").write_text(text)
        tear_down()

    case.tearDown = keep_record
    result = unittest.TestResult()
    start = time.monotonic()
    case.run(result)
    seconds = time.monotonic() - start
    problems = result.failures + result.errors
    if problems:
        text = "\n".join(text for _, text in problems)
        (logs / f"{name}.log").write_text(text)
        return Result(name, "failed", last_line(text), seconds)
    if result.skipped:
        return Result(name, "skipped", last_line(reason or result.skipped[0][1]), seconds)
    return Result(name, "passed", "", seconds)


def expectation(backend: str, torch_version: str, ranks: int) -> dict[str, str]:
    """Tests that are expected to fail, with the reason."""
    with EXPECTED.open("rb") as file:
        entries = tomllib.load(file)["failure"]
    return {
        entry["test"]: entry["reason"]
        for entry in entries
        if backend in entry.get("backends", [backend])
        and torch_version in entry.get("torch", [torch_version])
        and ranks in entry.get("ranks", [ranks])
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="stepccl", choices=["stepccl", "gloo"])
    parser.add_argument("--ranks", type=int, default=2, help="ranks of each test, 1 to 8")
    parser.add_argument("--only", metavar="REGEX", help="only tests whose name this finds something in")
    parser.add_argument("--part", type=Path, metavar="FILE", help="only tests that this file names, one a line")
    parser.add_argument("--records", type=Path, required=True, help="folder for logs and results")
    options = parser.parse_args()
    if not 1 <= options.ranks <= 8:
        parser.error(f"--ranks {options.ranks}: must be 1 to 8")
    os.environ["BACKEND"] = options.backend
    os.environ["WORLD_SIZE"] = str(options.ranks)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    options.records.mkdir(parents=True, exist_ok=True)

    import multiprocessing

    # The server inherits standard output; what is printed there by ranks before their log is open
    # is not for the reader of the results.
    screen = os.fdopen(os.dup(1), "w", buffering=1)
    noise = os.open(options.records / "runner.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(noise, 1)
    os.dup2(noise, 2)
    multiprocessing.set_forkserver_preload(["wheel_tests"])

    import torch
    import wheel_tests
    from torch.testing._internal import common_distributed

    common_distributed.TIMEOUT_DEFAULT = TEST_S
    common_distributed.TIMEOUT_OVERRIDE.clear()

    version = ".".join(torch.__version__.split(".")[:2])
    names = wheel_tests.names()
    if options.only:
        names = [name for name in names if re.search(options.only, name)]
    if options.part:
        wanted = options.part.read_text().split()
        names = [name for name in names if name in wanted]
    if not names:
        print("no such test", file=screen)
        sys.exit(2)
    expected = expectation(options.backend, version, options.ranks)

    print(f"torch {version}, {options.backend}, {options.ranks} ranks: {len(names)} tests", file=screen)
    results, wrong = [], []
    begin = time.monotonic()
    for number, name in enumerate(names, 1):
        result = run_one(wheel_tests, name, options.records)
        results.append(result)
        note = ""
        if result.outcome == "failed" and name not in expected:
            note = "  UNEXPECTED"
            wrong.append(f"{name} failed: {result.reason}")
        elif result.outcome == "failed":
            note = f"  expected: {expected[name]}"
        elif name in expected and result.outcome == "passed":
            note = "  UNEXPECTED"
            wrong.append(f"{name} passed, and {EXPECTED.name} says it fails: {expected[name]}")
        reason = f": {result.reason}" if result.reason else ""
        print(f"[{number:3}/{len(names)}] {result.seconds:5.1f} s {result.outcome:7} {name}{reason}{note}", file=screen)
    with (options.records / "results.jsonl").open("w") as file:
        for result in results:
            file.write(json.dumps(asdict(result)) + "\n")
    count = {kind: sum(r.outcome == kind for r in results) for kind in ("passed", "skipped", "failed")}
    print(
        f"torch {version}, {options.backend}, {options.ranks} ranks: {count['passed']} passed, "
        f"{count['skipped']} skipped, {count['failed']} failed "
        f"({len(wrong)} unexpected) in {time.monotonic() - begin:.0f} s; logs in {options.records}",
        file=screen,
    )
    for line in wrong:
        print(f"  {line}", file=screen)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
