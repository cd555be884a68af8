"""The measurement of a torch call runs and prints its table."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("torch_overhead.py")


def test_it_prints_a_row_for_one_rank_and_for_two():
    done = subprocess.run([sys.executable, SCRIPT, "--quick"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["1", "2"], done.stdout
    for row in rows:
        through_torch, extension, floor = map(float, row[1:4])
        assert min(through_torch, extension, floor) > 0, row
