"""The page on memory order names tests that exist, and every test that takes a barrier away."""

import re
from pathlib import Path

import pytest
from repository import files, text

PAGE = Path("Documentation/memory-model.md")
MODELS = [path for path in files() if path.name == "loom.rs"]


def named(page: str) -> set[str]:
    """Tests in the last column of the tables that have one for them."""
    found: set[str] = set()
    for table in re.findall(r"^\| pair .*\| shown by \|$\n((?:\|.*\n?)+)", page, re.M):
        for row in table.splitlines():
            found.update(re.findall(r"`(\w+)`", row.rstrip("|").rpartition("|")[2]))
    return found


def without(model: str) -> set[str]:
    """Tests that take a barrier away."""
    block = model.split("must_fail! {")[-1]
    return set(re.findall(r"^ *(\w+): \w+", block, re.M))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_each_model_has_a_test_without_each_barrier_and_the_page_names_it(model):
    tests = without(text(model))
    assert len(tests) > 1
    assert not tests - named(text(PAGE)), f"not in {PAGE}"


def test_each_barrier_names_a_test():
    sources = "".join(map(text, MODELS))
    missing = [
        name for name in named(text(PAGE)) if not re.search(rf"\bfn {name}\(|^ *{name}: ", sources, re.M)
    ]
    assert len(named(text(PAGE))) > 20 and not missing
