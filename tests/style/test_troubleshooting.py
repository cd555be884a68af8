"""The page on troubleshooting quotes the message of every error of the library."""

import re

import pytest
from repository import ROOT, text

PAGE = ROOT / "Documentation" / "troubleshooting.md"
# Files with the errors that reach a user.
ERRORS = [
    "runtime/stepccl/src/error.rs",
    "runtime/bootstrap/src/error.rs",
    "runtime/bootstrap/src/secret.rs",
    "runtime/bootstrap/src/store/error.rs",
    "runtime/device/src/error.rs",
    "runtime/device/src/device/error.rs",
    "runtime/engine/api/src/error.rs",
    "runtime/engine/host/src/error.rs",
    "runtime/engine/tcp/src/error.rs",
    "runtime/memory/src/error.rs",
    "runtime/plan/src/error.rs",
]
# Letters that a message must have of its own to be looked for; "{what}: {message}" has none.
LEAST_LETTERS = 8


def variants(source: str) -> dict[str, str]:
    """The format of the message of each `Enum::Variant`; empty where it is another error's."""
    found = {}
    enum = None
    pattern = re.compile(
        r"pub enum (?P<enum>\w+)"
        r"|#\[error\(\s*(?P<message>transparent|\"(?:\\.|[^\"\\])*\")(?:[^\]]|\](?!\n))*\]\s*\n\s*(?P<variant>\w+)",
        re.S,
    )
    for match in pattern.finditer(source):
        if match["enum"]:
            enum = match["enum"]
        elif enum:
            message = "" if match["message"] == "transparent" else match["message"][1:-1]
            message = re.sub(r"\\\n\s*", "", message).replace('\\"', '"')
            found[f"{enum}::{match['variant']}"] = message
    return found


def literals(message: str) -> list[str]:
    return re.split(r"\{[^{}]*\}", message)


def quoted(page: str) -> list[str]:
    """Code spans, and the lines of blocks."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page, re.M | re.S)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```\w*\n.*?^```", "", page, flags=re.M | re.S))
    return [line for block in blocks for line in block.splitlines()] + spans


ALL = {name: message for path in ERRORS for name, message in variants(text(ROOT / path)).items()}
PAGE_TEXT = PAGE.read_text()
QUOTED = quoted(PAGE_TEXT)


@pytest.mark.parametrize("variant", sorted(ALL))
def test_each_error_is_named_and_quoted(variant):
    assert f"`{variant}`" in PAGE_TEXT, f"{PAGE.name} does not name {variant}"
    # A code span holds no backtick.
    parts = [part.replace("`", "") for part in literals(ALL[variant])]
    if sum(map(str.isalpha, "".join(parts))) >= LEAST_LETTERS:
        pattern = ".+".join(map(re.escape, parts))
        assert any(re.search(pattern, line.replace("`", "")) for line in QUOTED), f"no quote of: {ALL[variant]}"


def test_each_named_error_exists():
    enums = {name.split("::")[0] for name in ALL}
    named = re.findall(r"`((?:%s)::\w+)`" % "|".join(sorted(enums)), PAGE_TEXT)
    assert set(named) <= set(ALL), sorted(set(named) - set(ALL))


def test_the_finder_finds():
    source = 'pub enum A {\n #[error(\n "x {y} \\\n   z {}",\n f(y)\n )]\n B {\n y: u8 },\n #[error(transparent)]\n C(D),\n}'
    assert variants(source) == {"A::B": "x {y} z {}", "A::C": ""}
    assert literals("x {y} z {}") == ["x ", " z ", ""]
    assert quoted("a `b c`\n```\nd `e\nf\n```\n") == ["d `e", "f", "b c"]
    for path in ERRORS:
        source = text(ROOT / path)
        assert len(variants(source)) == len(re.findall(r"^\s+#\[error\(", source, re.M)), path
