"""The typed stubs of the extension say what the extension has."""

import ast
import builtins
import inspect
from pathlib import Path

import stepccl
from repository import ROOT
from stepccl import _core

PACKAGE = ROOT / "runtime/python/python/stepccl"
# Names that exist for type checkers only.
TYPES_ONLY = {"Store", "Settings"}


def stub_names() -> dict[str, ast.stmt]:
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def public(thing: object) -> set[str]:
    return {name for name in vars(thing) if not name.startswith("_")}


def test_the_module_has_the_names_of_the_stub():
    assert public(_core) == set(stub_names()) - TYPES_ONLY


def test_classes_have_the_members_of_the_stub():
    for name, node in stub_names().items():
        if name in TYPES_ONLY or not isinstance(node, ast.ClassDef):
            continue
        wanted = {
            item.name
            for item in node.body
            if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")
        }
        assert public(getattr(_core, name)) == wanted, name


def test_functions_take_the_arguments_of_the_stub():
    for name in ("Communicator",):
        for item in stub_names()[name].body:
            if not isinstance(item, ast.FunctionDef) or item.name.startswith("_") or item.decorator_list:
                continue
            signature = inspect.signature(getattr(getattr(_core, name), item.name))
            wanted = [argument.arg for argument in item.args.posonlyargs + item.args.args]
            assert list(signature.parameters) == wanted, f"{name}.{item.name}"


def test_errors_are_of_the_stub_s_family():
    for name, node in stub_names().items():
        if isinstance(node, ast.ClassDef) and node.bases and name not in TYPES_ONLY:
            base = node.bases[0].id
            expected = getattr(builtins, base, None) or getattr(_core, base)
            assert issubclass(getattr(_core, name), expected), name


def test_public_names_of_the_package():
    assert sorted(stepccl.__all__) == stepccl.__all__
    for name in stepccl.__all__:
        assert hasattr(stepccl, name), name
    assert Path(stepccl.__file__).with_name("py.typed").exists()
