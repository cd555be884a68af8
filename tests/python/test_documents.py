"""The Python that documents show runs as it stands there, on two ranks."""

import errno
import os
import random
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

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
    assert {place.split(":")[0] for place, _ in BLOCKS} >= {"README.md", "tutorial-migrating.md"}


@pytest.mark.parametrize("block", [code for _, code in BLOCKS], ids=[place for place, _ in BLOCKS])
def test_each_block_runs(block, tmp_path):
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14):
        # As the documents say.
        block = "import stepccl\n" + block
    port = _free_port()
    own = {name: value for name, value in os.environ.items() if not name.startswith("STEPCCL_")}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", block],
            cwd=tmp_path,
            env=own
            | {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(RANKS),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(RANKS)
    ]
    try:
        for process in ranks:
            output, _ = process.communicate(timeout=LIMIT_S)
            assert process.returncode == 0, output
    finally:
        for process in ranks:
            process.kill()
