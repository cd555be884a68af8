"""Make small stand-ins for the GPU libraries that a torch wheel links.

The wheels of torch for Linux link a dozen CUDA libraries of 2.5 GB in all, and do not import
without them. On a machine that uses torch on the CPU only, libraries with the right names are
enough: this script reads which symbols torch's own libraries want and compiles one small library
for each name. Each function in them answers 100, CUDA's code for "no device".

Usage: torch-stubs.py TORCH_LIB_FOLDER OUTPUT_FOLDER. Needs gcc and readelf.
"""

import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

TORCH_LIBRARIES = re.compile(r"^(libtorch|libc10|libshm|libcaffe2).*\.so$")
SYSTEM_LIBRARIES = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|util)\.so|ld-linux)")
SYSTEM_VERSIONS = ("GLIBC", "CXXABI", "GCC_", "GOMP", "OMP_", "GOACC", "LIBGFORTRAN", "QUADMATH")
GPU_SYMBOL = re.compile(r"^(cu|nv|nccl|_?_?cuda)")
RETURNS_TEXT = re.compile(r"(Get(Error)?(String|Name)|ErrorString|ErrorName|ncclGetLastError)$")


@dataclass
class Wanted:
    """What torch's libraries ask of others."""

    libraries: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    undefined: set[str] = field(default_factory=set)  # name or name@version
    version_owner: dict[str, str] = field(default_factory=dict)  # symbol version -> library


def readelf(*args: str) -> list[str]:
    done = subprocess.run(["readelf", "-W", *args], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def read_needs(folder: Path) -> Wanted:
    wanted = Wanted()
    shipped = {path.name for path in folder.iterdir()}
    for path in sorted(folder.iterdir()):
        if not TORCH_LIBRARIES.match(path.name):
            continue
        for line in readelf("-d", str(path)):
            found = re.search(r"NEEDED.*\[(.*)\]", line)
            if found and found[1] not in shipped and not SYSTEM_LIBRARIES.match(found[1]):
                wanted.libraries.add(found[1])
        for line in readelf("--dyn-syms", str(path)):
            # Num: Value Size Type Bind Vis Ndx Name
            columns = line.split()
            if len(columns) < 8 or not columns[0].endswith(":"):
                continue
            bind, index, name = columns[4], columns[6], columns[7]
            if index != "UND":
                wanted.defined.add(name.split("@")[0])
            elif bind != "WEAK":
                wanted.undefined.add(name)
        owner = None
        for line in readelf("-V", str(path)):
            if found := re.search(r"File: (\S+)", line):
                owner = found[1]
            if owner and (found := re.search(r"Name: (\S+)\s+Flags", line)):
                wanted.version_owner[found[1]] = owner
    return wanted


def assign(wanted: Wanted) -> dict[str, dict[str, set[str]]]:
    """Library -> symbol version ('' for none) -> functions.

    A versioned symbol belongs to the library that owns its version. Symbols without one can live
    anywhere, so they go to the CUDA run-time; those of NCCL must stay in NCCL's library, where
    they cannot hide the real ones.
    """
    plan: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in wanted.libraries}
    runtime = next(name for name in sorted(wanted.libraries) if "cudart" in name)
    nccl = next((name for name in sorted(wanted.libraries) if "nccl" in name), runtime)
    versioned = set()
    for symbol in wanted.undefined:
        name, _, version = symbol.partition("@")
        version = version.strip("@")
        if name in wanted.defined or not version or version.startswith(SYSTEM_VERSIONS):
            continue
        owner = wanted.version_owner.get(version)
        if owner in plan:
            plan[owner][version].add(name)
            versioned.add(name)
    for symbol in wanted.undefined - wanted.defined:
        if "@" not in symbol and GPU_SYMBOL.match(symbol) and symbol not in versioned:
            plan[nccl if symbol.startswith("nccl") else runtime][""].add(symbol)
    return plan


def function(name: str) -> str:
    if RETURNS_TEXT.search(name):
        return f'const char *{name}(void) {{ return "no GPU"; }}'
    if name.startswith("__cuda"):
        # Called by initialisers of torch's own kernels, which keep the pointer.
        return f"static void *slot_{name}[8]; void *{name}(void) {{ return slot_{name}; }}"
    return f"int {name}(void) {{ return 100; }}"


def compile_library(name: str, versions: dict[str, set[str]], out: Path) -> int:
    functions = sorted(set().union(*versions.values()))
    source = out / f"{name}.c"
    source.write_text("\n".join(function(f) for f in functions) + "\n")
    command = ["gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", "-o", str(out / name)]
    command.append(str(source))
    script = out / f"{name}.map"
    named = {version: names for version, names in versions.items() if version}
    if named:
        script.write_text(
            "".join(f"{v} {{ global: {'; '.join(sorted(n))}; }};\n" for v, n in named.items())
        )
        command.append(f"-Wl,--version-script,{script}")
    subprocess.run(command, check=True)
    source.unlink()
    script.unlink(missing_ok=True)
    return len(functions)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    plan = assign(read_needs(folder))
    functions = sum(compile_library(name, plan[name], out) for name in sorted(plan))
    print(f"{len(plan)} libraries with {functions} functions in {out}")


if __name__ == "__main__":
    main()
