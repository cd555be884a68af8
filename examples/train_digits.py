"""Train a small network on scikit-learn's digits with DistributedDataParallel, twice.

The first training runs on stepccl, the second, with the same start and the same data, on gloo.
Rank 0 shows progress and then a comparison. Start it with torchrun:

    torchrun --nproc-per-node 2 examples/train_digits.py
"""

import argparse
import os
import statistics
import sys
import time
from dataclasses import dataclass, field

import stepccl
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

TEST_SHARE = 5
WARM_UP_STEPS = 10


@dataclass
class Result:
    """One training as the summary shows it."""

    backend: str
    accuracy: float
    seconds: float
    step_ms: list[float]
    weights: list[Tensor]
    stats: dict[str, object] = field(default_factory=dict)


def load() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images and labels to train on, then to test with: every fifth image is for the test."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    test = torch.arange(len(labels)) % TEST_SHARE == 0
    return images[~test], labels[~test], images[test], labels[test]


def network(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def accuracy(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Share of right answers over all ranks, each of which looks at its part."""
    rank, size = dist.get_rank(), dist.get_world_size()
    with torch.no_grad():
        right = net(images[rank::size]).argmax(1).eq(labels[rank::size]).sum()
    dist.all_reduce(right)
    return right.item() / len(labels)


def train(backend: str, options: argparse.Namespace) -> Result:
    """One training from the same start; every rank takes its part of each batch."""
    dist.init_process_group(backend=backend, init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels, test_images, test_labels = load()
    torch.manual_seed(0)
    net = DistributedDataParallel(network(options.width))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    shuffle = torch.Generator().manual_seed(1)
    batch = options.batch * size
    steps = len(labels) // batch
    step_ms = []
    start = time.perf_counter()
    # A log gets a line now and then, a terminal a bar that moves.
    every_s = 0.1 if sys.stderr.isatty() else 10
    with tqdm(
        total=options.epochs * steps, desc=backend, unit="step", mininterval=every_s, disable=rank != 0
    ) as bar:
        for _ in range(options.epochs):
            order = torch.randperm(len(labels), generator=shuffle)
            for step in range(steps):
                mine = order[step * batch : (step + 1) * batch][rank::size]
                begin = time.perf_counter()
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(images[mine]), labels[mine])
                loss.backward()
                optimizer.step()
                step_ms.append((time.perf_counter() - begin) * 1e3)
                bar.update()
            bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
    seconds = time.perf_counter() - start
    share = accuracy(net.module, test_images, test_labels)
    stats = next(iter(stepccl.stats().values()), {})
    dist.destroy_process_group()
    weights = [p.detach().clone() for p in net.module.parameters()]
    return Result(backend, share, seconds, step_ms[WARM_UP_STEPS:], weights, stats)


def path(stats: dict[str, object]) -> str:
    """Engine and algorithms, with how many message sizes each served."""
    algorithms = stats.get("algorithms") or {}
    ran = ", ".join(f"{name} for {sizes} sizes" for name, sizes in sorted(algorithms.items()))
    return f"{stats['engine']} engine, {ran}"


def summary(ours: Result, theirs: Result) -> str:
    sizes = sum(w.numel() * w.element_size() for w in ours.weights)
    difference = max(
        (a - b).abs().max().item() for a, b in zip(ours.weights, theirs.weights, strict=True)
    )
    rows = [
        ("", ours.backend, theirs.backend),
        ("accuracy on the test images", f"{ours.accuracy:.2%}", f"{theirs.accuracy:.2%}"),
        ("time per step, median", *(f"{statistics.median(r.step_ms):.2f} ms" for r in (ours, theirs))),
        ("training time", *(f"{r.seconds:.1f} s" for r in (ours, theirs))),
        ("bytes moved by this rank", f"{ours.stats['bytes_moved'] / 1e6:,.1f} MB", "-"),
        ("operations", f"{ours.stats['operations']:,}", "-"),
        ("staging memory of this rank", f"{ours.stats['staging_bytes'] / 2**20:.2f} MiB", "-"),
    ]
    wide = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"{a:<{wide[0]}}  {b:>{wide[1]}}  {c:>{wide[2]}}" for a, b, c in rows]
    lines.insert(1, "-" * (sum(wide) + 4))
    return "\n".join(
        [
            "",
            f"torch {torch.__version__}, stepccl {stepccl.__version__}, "
            f"{os.environ['WORLD_SIZE']} processes, gradients of {sizes / 1e6:.1f} MB a step",
            "",
            *lines,
            "",
            f"path: {path(ours.stats)}",
            f"largest difference of a weight between the two: {difference:.3g}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20, help="passes over the images")
    parser.add_argument("--batch", type=int, default=32, help="images a step and process")
    parser.add_argument("--width", type=int, default=1024, help="neurons of the hidden layer")
    options = parser.parse_args()
    for name in ("epochs", "batch", "width"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: must be at least 1")
    torch.set_num_threads(1)
    ours, theirs = train("stepccl", options), train("gloo", options)
    if int(os.environ["RANK"]) == 0:
        print(summary(ours, theirs))


if __name__ == "__main__":
    main()
