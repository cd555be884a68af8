"""What is measured: operations, sizes, contenders, and the bounds of the machine."""

from dataclasses import dataclass

KIB, MIB = 1 << 10, 1 << 20
OURS = {"native": "stepccl", "torch": "stepccl-torch"}


@dataclass(frozen=True)
class Contender:
    """A library at one level."""

    name: str
    label: str
    level: str


# Order of columns. A level compares what one kind of user calls: C and Rust programs, or torch.
CONTENDERS = [
    Contender("stepccl", "StepCCL", "native"),
    Contender("openmpi", "Open MPI", "native"),
    Contender("mpich", "MPICH", "native"),
    Contender("stepccl-torch", "StepCCL", "torch"),
    Contender("gloo", "gloo", "torch"),
]
LEVELS = {
    "native": "from a compiled program: Rust for StepCCL, C for Open MPI and MPICH",
    "torch": "from Python, through torch.distributed",
}

OPERATIONS = [
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "sendrecv",
    "ping_pong",
    "barrier",
]

FULL_SIZES = [1 << shift for shift in range(3, 29)]
QUICK_SIZES = [8, KIB, 64 * KIB, MIB, 16 * MIB, 128 * MIB]
# Copying is measured beside these and larger ones: a smaller buffer lives in a core's own cache.
COPY_FROM = 16 * MIB


def contenders(level):
    return [contender for contender in CONTENDERS if contender.level == level]


def sizes_of(operation, sizes):
    """A barrier has no size."""
    return [0] if operation == "barrier" else sizes


def calls_to_time(operation):
    """Part of a call that is shown: a ping-pong is two messages, and one of them is shown."""
    return 0.5 if operation == "ping_pong" else 1.0


def bound_us(operation, nbytes, ranks, rates):
    """Microseconds that copying alone takes, where each rank's core writes its own results once.

    `rates` has GB/s of each process by the number of processes that copy at once: every rank of an
    all_gather or an all_to_all writes `nbytes`; of a broadcast every rank but the root does. None
    for other operations, and where the rate was not measured.
    """
    processes = {"all_gather": ranks, "all_to_all": ranks, "broadcast": ranks - 1}.get(operation)
    rate = rates.get(processes)
    return nbytes / rate / 1e3 if rate else None


def show_size(nbytes):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if nbytes >= 1 << shift and nbytes % (1 << shift) == 0:
            return f"{nbytes >> shift} {unit}"
    return f"{nbytes} B"


def parse_size(text):
    """Bytes of `64K`, `1M`, `1G` or a plain number; ValueError names the rule."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    digits = text[:-1] if unit else text
    if not digits.isdigit() or int(digits) == 0:
        raise ValueError(f"size {text!r} is not a positive whole number, alone or with K, M or G")
    return int(digits) << unit
