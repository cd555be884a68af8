"""Rules for sources: lints, licences, sizes, and the order in which files are read."""

import re
import tomllib

import pytest
from repository import ROOT, files, text, with_suffix

RUST = with_suffix(".rs")
CRATES = [path for path in files() if path.name == "Cargo.toml" and len(path.parts) > 1]
MAX_LINES = 800
# File -> why it is not split.
LONG_FILES = {"uapi/include/dma_engine.h": "programs include one header; half of it is its contract"}


def test_no_blanket_allow():
    """A lint is switched off where it is wrong, with #[expect(..., reason)], not for a file."""
    found = [
        f"{path}: {line.strip()}"
        for path in RUST
        for line in text(path).splitlines()
        if re.match(r"\s*#!\[\s*allow\b", line)
    ]
    assert not found, found


def test_each_expect_has_a_reason():
    found = [
        f"{path}: {expect}"
        for path in RUST
        for expect in re.findall(r"#!?\[expect\([^\]]*\)\]", text(path))
        if "reason" not in expect
    ]
    assert not found, found


@pytest.mark.parametrize("crate", CRATES, ids=str)
def test_crates_inherit(crate):
    """Lints, version and edition are decided in one place."""
    manifest = tomllib.loads(text(crate))
    assert manifest.get("lints") == {"workspace": True}, "needs [lints] workspace = true"
    for key in ("version", "edition", "rust-version"):
        assert manifest["package"][key] == {"workspace": True}, f"{key} is to be inherited"
    licence = manifest["package"]["license"]
    # The header as Linux spells it, and parts of the driver compiled for their tests.
    other = {"uapi": "GPL-2.0 WITH Linux-syscall-note", "tests/driver-parts": "GPL-2.0"}
    want = other.get(str(crate.parent), {"workspace": True})
    assert licence == want, f"license is {licence}"


def test_crates_are_members():
    members = set(tomllib.loads(text(files()[files().index(ROOT_MANIFEST)]))["workspace"]["members"])
    assert members == {str(crate.parent) for crate in CRATES}


ROOT_MANIFEST = next(path for path in files() if str(path) == "Cargo.toml")


def test_licence_headers():
    """The header and the driver say their licence in each file; Linux asks for it."""
    for path in files():
        if path.parts[0] == "driver" and path.suffix in (".rs", ".c", ".h"):
            assert "SPDX-License-Identifier: GPL-2.0" in text(path).split("\n", 1)[0], path
        if path.parts[0] == "uapi" and path.suffix == ".h" and "include" in path.parts:
            first = text(path).split("\n", 1)[0]
            assert "SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note" in first, path


def test_licence_texts():
    for name in ("GPL-2.0", "Linux-syscall-note", "MIT", "Apache-2.0"):
        assert (ROOT / "LICENSES" / f"{name}.txt").stat().st_size > 500, name


def test_long_files_have_a_reason():
    long = {
        str(path): lines
        for path in with_suffix(".rs", ".py", ".pyi", ".c", ".h", ".sh")
        if (lines := len(text(path).splitlines())) > MAX_LINES
    }
    assert set(long) == set(LONG_FILES), f"split these, or list them with a reason: {long}"


def test_the_walk_is_unbroken():
    """`Before: FILE` and `After: FILE` lines name files that exist."""
    missing = []
    for path in with_suffix(".rs", ".py"):
        if path.parts[:2] == ("tests", "style"):
            continue
        for name in re.findall(r"^(?://!|#)? ?(?:Before|After): `?([\w./]+/[\w./]+?)`?\.?$", text(path), re.M):
            if not (ROOT / name).exists():
                missing.append(f"{path}: {name}")
    assert not missing, missing


def test_scripts_are_executable_and_say_how_to_use_them():
    for path in files():
        if path.parts[0] != "scripts" or not text(path).startswith("#!"):
            continue
        assert (ROOT / path).stat().st_mode & 0o111, f"{path} is not executable"
        if "bash" in text(path).split("\n", 1)[0]:
            assert f"# Usage: {path}" in text(path), f"{path} has no usage line"


def test_shell_scripts_parse():
    import subprocess

    for path in files():
        if path.suffix == ".sh" or text_starts_with_bash(path):
            subprocess.run(["bash", "-n", str(ROOT / path)], check=True)


def text_starts_with_bash(path):
    with open(ROOT / path, "rb") as file:
        return file.readline().startswith(b"#!/usr/bin/env bash")
