"""What each contender needs, made once: environments from PyPI, programs, the wheel."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PERF = ROOT / "tests" / "perf"
BUILD = ROOT / "build" / "bench"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepccl"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
TORCH = "2.15"


class BuildError(Exception):
    """Something a contender needs could not be made; the message says what and the next step."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, seconds=1800, **options):
    """Output of a command that must succeed."""
    words = " ".join(map(str, command))
    try:
        done = subprocess.run(command, timeout=seconds, capture_output=True, text=True, **options)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise BuildError(f"{words}: {reason}") from reason
    if done.returncode != 0:
        raise BuildError(f"{words} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def environment(name):
    """Folder of the virtual environment of `name`, made if it is not there.

    Its name holds a hash of what decides its content. It counts as there when a file in it says so,
    written last, so that an interrupted run leaves nothing half done in use.
    """
    requirements = PERF / f"requirements-{name}.txt"
    key = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / f"bench-{name}-{key}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "bench.lock").open("w") as lock:
        # Two runs at once must not fill one folder.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            say(f"making {folder} (once; needs the network)")
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=True)
            pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            run([*pip, "-r", requirements])
            (folder / "ready").touch()
    return folder


def mpi(name, ranks):
    """Command and environment variables of the ranks of an MPI."""
    folder = environment(name)
    program = BUILD / f"rank-{name}"
    source = PERF / "mpi_rank.c"
    if not program.exists() or program.stat().st_mtime < max(source.stat().st_mtime, (folder / "ready").stat().st_mtime):
        BUILD.mkdir(parents=True, exist_ok=True)
        library = folder / "lib"
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{folder / 'include'}", f"-Wl,-rpath,{library}"]
        run(["gcc", *flags, "-o", program, source, library / "libmpi.so"])
    command = [folder / "bin" / "mpirun", "-n", str(ranks)]
    if name == "openmpi":
        # Each rank takes its core itself, as those of every contender do.
        command += ["--bind-to", "none"]
        if len(os.sched_getaffinity(0)) < ranks:
            command += ["--oversubscribe"]
        if os.geteuid() == 0:
            command += ["--allow-run-as-root"]
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return [*map(str, command), str(program)], dict(os.environ, PATH=path)


def stepccl():
    """Command and environment variables of a rank of StepCCL."""
    run(["cargo", "build", "--quiet", "--locked", "--release", "-p", "stepccl-perf-rank"], cwd=ROOT)
    return [str(TARGET / "release" / "stepccl-perf-rank")], dict(os.environ)


def torch(backend):
    """Command and environment variables of a rank of torch.distributed."""
    python = [ROOT / "scripts" / "python", TORCH]
    packages = BUILD / "python"
    run([ROOT / "scripts" / "build-python", "--wheel"], cwd=ROOT)
    wheel = max((ROOT / "build" / "wheels").glob("*/*.whl"), key=lambda path: path.stat().st_mtime)
    stamp = packages / "wheel"
    if not stamp.exists() or stamp.read_text() != str(wheel):
        shutil.rmtree(packages, ignore_errors=True)
        pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index"]
        run([*python, *pip, "--target", packages, wheel])
        stamp.write_text(str(wheel))
    env = dict(os.environ, BENCH_BACKEND=backend, PYTHONPATH=str(packages))
    return [*map(str, python), str(PERF / "torch_rank.py")], env


def contender(name, ranks):
    """Command and environment variables of the ranks of a contender."""
    if name == "stepccl":
        return stepccl()
    if name in ("openmpi", "mpich"):
        return mpi(name, ranks)
    return torch("stepccl" if name == "stepccl-torch" else name)
