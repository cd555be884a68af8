"""Documents name files that exist."""

import re
from pathlib import Path

import pytest
from repository import ROOT, files, text, with_suffix

TOP = {path.parts[0] for path in files()}
DOCUMENTS = [
    path for path in with_suffix(".md") if path.parts[0] in ("Documentation", "README.md", "LICENSE.md")
]


def named_paths(document: str) -> set[str]:
    """Paths in code spans, and targets of links, that start at the top of the repository."""
    spans = re.findall(r"`([^`\n]+)`", document)
    links = re.findall(r"\]\(([^)#\s]+)\)", document)
    found = set()
    for candidate in spans + links:
        word = candidate.split()[0].rstrip(".,:;")
        word = re.sub(r":\d+$", "", word)
        if re.fullmatch(r"[\w./{},*-]+", word) and (word.split("/")[0] in TOP or candidate in links):
            found.add(word)
    return found


def expand(path: str) -> list[str]:
    """`a/{b,c}.rs` names two files."""
    group = re.search(r"\{([^}]*)\}", path)
    if not group:
        return [path]
    return [
        whole
        for part in group[1].split(",")
        for whole in expand(path[: group.start()] + part + path[group.end() :])
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_each_named_path_exists(document):
    missing = []
    for name in named_paths(text(document)):
        for path in expand(name):
            near = [ROOT / path, ROOT / document.parent / path]
            there = any(list(base.parent.glob(base.name)) if "*" in path else base.exists() for base in near)
            if not there:
                missing.append(path)
    assert not missing, f"{document} names what is not there: {missing}"


def test_there_are_documents():
    assert Path("README.md") in DOCUMENTS


def test_the_path_finder_finds():
    found = named_paths("see `runtime/plan/src/{step,plan}.rs`, [x](LICENSE.md), `f(a/b)`, `no/such`")
    assert found == {"runtime/plan/src/{step,plan}.rs", "LICENSE.md"}
    assert expand("a/{b,c}.rs") == ["a/b.rs", "a/c.rs"]
