"""torch's own distributed tests, from the installed wheel, on any backend.

They check the profiler's events only of backends that they know, whose calls all end on another
thread; ours are checked in tests/python/test_work.py.

Import it with BACKEND and WORLD_SIZE in the environment. The ranks of a test are forked from one
process that has imported all of this, which takes a tenth of the time of starting each anew.
"""

import os
import sys
import tempfile
import traceback
import unittest
from pathlib import Path
from typing import Any

BACKEND = os.environ["BACKEND"]
os.environ["INIT_METHOD"] = "file:///set/for/each/test"
os.environ.setdefault("TEMP_DIR", tempfile.gettempdir())
SKIP_REASON = "skip-reason"
FAILURE = "failure"


class AsCapable(str):
    """Name of a backend that can do what the tests ask gloo or MPI for.

    The tests guard themselves by `BACKEND != "gloo"` (sparse all_reduce, timeouts),
    `BACKEND not in {"gloo"}` (coalesced all_reduce, monitored_barrier) and `BACKEND != "mpi"`
    (all_to_all on CPU); these guards let this name pass.
    """

    def __eq__(self, other: object) -> bool:
        return other == "gloo" or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return other != "mpi" and not self == other

    def __hash__(self) -> int:
        return hash("gloo")


def _load() -> Any:
    if BACKEND == "gloo":
        from torch.testing._internal.distributed import distributed_test

        return distributed_test
    import stepccl  # noqa: F401  (torch before 2.14 finds it by the import alone)
    from torch.testing._internal.common_distributed import DistTestCases

    DistTestCases.backend_feature["plugin"].add(BACKEND)
    decode = os.environ.decodevalue
    os.environ.decodevalue = lambda value: AsCapable(BACKEND) if decode(value) == BACKEND else decode(value)
    from torch.testing._internal.distributed import distributed_test

    os.environ.decodevalue = decode
    return distributed_test


tests = _load()

import torch.multiprocessing  # noqa: E402
from torch.testing._internal import common_utils  # noqa: E402

torch.set_num_threads(1)
# The options of torch's own test programs, which are set by its main().
common_utils.TEST_SAVE_XML = None


class Distributed(tests.TestDistBackend, tests.DistributedTest._DistTestBase):
    """The tests, with ranks that are forked instead of started."""

    def setUp(self) -> None:
        super().setUp()
        Path(self.file_name).unlink()
        # The ranks learn the folder from the name of the file, since they are forked from a
        # process whose environment is older.
        self.file_name = str(Path(os.environ["TEMP_DIR"]) / "store")
        self._start_processes(torch.multiprocessing.get_context("forkserver").Process)

    @classmethod
    def _run(cls, rank: int, test_name: str, file_name: str, pipe: Any, **kwargs: Any) -> None:
        folder = Path(file_name).parent
        os.environ["TEMP_DIR"] = str(folder)
        os.environ["INIT_METHOD"] = tests.INIT_METHOD = f"file://{folder}/init_dir/shared_init_file"
        # What a test prints belongs to its record.
        log = os.open(folder / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        super()._run(rank, test_name, file_name, pipe, **kwargs)

    def run_test(self, test_name: str, parent_pipe: Any) -> None:
        folder = Path(self.file_name).parent
        run = getattr(self, test_name)

        def recorded() -> None:
            try:
                run()
            except unittest.SkipTest as skipped:
                (folder / SKIP_REASON).write_text(str(skipped))
                raise
            except Exception:
                (folder / f"{FAILURE}-{self.rank}").write_text(traceback.format_exc())
                raise

        setattr(self, test_name, recorded)
        super().run_test(test_name, parent_pipe)


def names() -> list[str]:
    """Every test, in order."""
    return unittest.TestLoader().getTestCaseNames(Distributed)


if __name__ == "__main__":
    sys.exit("run scripts/test-torch instead")
