"""Fixtures: worlds of ranks, made once and made anew after a test broke one."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.util import Finalize

import pytest
from ranks import World

# Whatever these tests, torchrun and pytest put into the temporary folder goes when they end; it is
# kept where one failed.
_folder = tempfile.mkdtemp(prefix="stepccl-tests-")
_failed = False
os.environ["TMPDIR"] = tempfile.tempdir = _folder


def _remove_folder() -> None:
    if not _failed:
        shutil.rmtree(_folder, ignore_errors=True)


# After multiprocessing has removed its own folder in it, which has priority -100.
Finalize(None, _remove_folder, exitpriority=-200)


def pytest_sessionfinish(exitstatus: int) -> None:
    global _failed
    _failed = exitstatus == pytest.ExitCode.TESTS_FAILED
    if _failed:
        print(f"\nfiles of the tests are kept in {_folder}")


# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every process
# of theirs; some tests are about Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

_worlds: dict[tuple[int, str], World] = {}


@pytest.fixture
def world() -> Callable[[int], World]:
    """world(size): a world that other tests use too; leave it as it was."""

    def get(size: int, backend: str = "stepccl") -> World:
        found = _worlds.get((size, backend))
        if found is None or not found.alive:
            found = _worlds[size, backend] = World(size, backend)
        return found

    return get


@pytest.fixture
def own_world() -> Iterator[Callable[..., World]]:
    """own_world(size): a world for this test alone, which may break it."""
    made: list[World] = []

    def get(size: int, **options: object) -> World:
        made.append(World(size, **options))
        return made[-1]

    yield get
    for world in made:
        world.kill()


@pytest.fixture(scope="session", autouse=True)
def _end_worlds() -> Iterator[None]:
    yield
    for world in _worlds.values():
        world.kill()
