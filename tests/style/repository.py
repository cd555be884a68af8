"""The files of the project, as the style tests see them."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def files() -> tuple[Path, ...]:
    """Tracked files and new ones that git does not ignore, that exist; relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = {Path(name) for name in listed.stdout.split("\0") if name}
    return tuple(sorted(path for path in paths if (ROOT / path).is_file()))


def with_suffix(*suffixes: str) -> list[Path]:
    """The files with one of these endings."""
    return [path for path in files() if path.suffix in suffixes]


def text(path: Path) -> str:
    return (ROOT / path).read_text()
