"""The Python that documents show runs as it stands there, on two ranks."""

import errno
import os
import random
import re
import socket
import time
from pathlib import Path

import pytest
import torch
from ranks import context

ROOT = Path(__file__).resolve().parents[2]
RANKS = 2
LIMIT_S = 120


def _blocks() -> list[tuple[str, str]]:
    found = []
    for document in [ROOT / "README.md", *sorted((ROOT / "Documentation").glob("*.md"))]:
        text = document.read_text()
        for match in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
            line = text[: match.start(1)].count("\n") + 1
            found.append((f"{document.name}:{line}", match[1]))
    return found


BLOCKS = _blocks()


def _free_port() -> int:
    """A free port which the system gives nobody who asks for any port."""
    while True:
        try:
            with socket.create_server(("127.0.0.1", random.randrange(20_000, 30_000))) as free:
                return int(free.getsockname()[1])
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def test_blocks_are_found():
    assert {place.split(":")[0] for place, _ in BLOCKS} >= {"README.md", "torch.md", "tutorial-migrating.md"}


@pytest.mark.parametrize("block", [code for _, code in BLOCKS], ids=[place for place, _ in BLOCKS])
def test_each_block_runs(block, tmp_path):
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14):
        if block.startswith("# torch 2.14 and newer\n"):
            pytest.skip("this torch is older")
        # As the documents say.
        block = "import stepccl\n" + block
    own = {name: value for name, value in os.environ.items() if not name.startswith("STEPCCL_")}
    own |= {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    outputs = [tmp_path / f"rank-{rank}" for rank in range(RANKS)]
    ranks = [
        context.Process(target=_run, args=(block, own | {"RANK": str(r), "LOCAL_RANK": str(r)}, outputs[r]))
        for r in range(RANKS)
    ]
    for process in ranks:
        process.start()
    deadline = time.monotonic() + LIMIT_S
    try:
        for process in ranks:
            process.join(max(deadline - time.monotonic(), 1))
        assert [process.exitcode for process in ranks] == [0] * RANKS, "\n".join(
            output.read_text() for output in outputs if output.exists()
        )
    finally:
        for process in ranks:
            process.kill()


def _run(block: str, environment: dict[str, str], output: Path) -> None:
    """Run a block as a program of its own."""
    log = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(output.parent)
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    exec(compile(block, "<document>", "exec"), {"__name__": "__main__"})
