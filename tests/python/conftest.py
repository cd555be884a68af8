"""Fixtures: worlds of ranks, made once and made anew after a test broke one."""

import signal
from collections.abc import Callable, Iterator

import pytest
from ranks import World

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
