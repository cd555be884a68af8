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


def anchors(document: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    found: set[str] = set()
    for title in re.findall(r"^#+ +(.+?)\s*$", outside_blocks(document), re.M):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower())
        anchor = words.replace(" ", "-")
        found.add(next(a for n in range(99) if (a := f"{anchor}-{n}" if n else anchor) not in found))
    return found


def outside_blocks(document: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", document, flags=re.M | re.S)


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_each_link_leads_somewhere(document):
    """Relative links name tracked files, and anchors headings of them."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", outside_blocks(text(document))):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / document.parent / name).resolve() if name else ROOT / document
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            broken.append(link)
    assert not broken, f"{document}: {broken}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_each_named_page_exists(document):
    """A page that is named without its folder is one of Documentation."""
    pages = set(re.findall(r"(?<![\w/`.*-])([a-z-]+\.md)\b", outside_blocks(text(document))))
    missing = [p for p in pages if not (ROOT / "Documentation" / p).exists()]
    assert not missing, f"{document} names pages that are not there: {missing}"


def test_the_anchors_are_those_of_github():
    document = "# A page\n## Errors, and `code`\n## Errors, and `code`\n```\n# no heading\n```\n"
    assert anchors(document) == {"a-page", "errors-and-code", "errors-and-code-1"}


def test_there_are_documents():
    assert Path("README.md") in DOCUMENTS


def test_the_path_finder_finds():
    found = named_paths("see `runtime/plan/src/{step,plan}.rs`, [x](LICENSE.md), `f(a/b)`, `no/such`")
    assert found == {"runtime/plan/src/{step,plan}.rs", "LICENSE.md"}
    assert expand("a/{b,c}.rs") == ["a/b.rs", "a/c.rs"]


def test_each_variable_is_documented():
    """Every setting stands in the page of variables, and the page on tuning says whether to turn it."""
    source = text(Path("runtime/stepccl/src/environment.rs"))
    names = re.findall(r'name: "(STEPCCL_\w+)"', source)
    assert len(names) > 10
    for page in ("environment.md", "tuning.md"):
        missing = [n for n in names if f"`{n}`" not in text(Path("Documentation") / page)]
        assert not missing, f"{page} lacks {missing}"
