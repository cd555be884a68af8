"""The plot: `python -m bench.plot RESULT.json PLOT.svg`, by a Python that has matplotlib.

One panel an operation: how many times as fast as the better peer we are, by size, at both levels.
"""

import sys
from pathlib import Path

import matplotlib

from . import catalogue, results

COLUMNS = 4
STYLE = {"native": ("tab:blue", "o"), "torch": ("tab:orange", "s")}
NAMES = {"native": "compiled program, against the better MPI", "torch": "torch.distributed, against gloo"}


def points(result, level, operation):
    """Sizes and ratios of a line; a barrier stands at the left end."""
    rows = [row for row in result["rows"] if (row["level"], row["operation"]) == (level, operation)]
    pairs = [(max(row["bytes"], 8), results.ratio(row)) for row in rows]
    return list(zip(*[pair for pair in pairs if pair[1]], strict=True)) or [(), ()]


def draw(result, path):
    """Write the plot of a result as SVG, the same bytes for the same result."""
    matplotlib.use("svg")
    # Text stays text, and names inside the file do not change from run to run.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 9})
    from matplotlib import pyplot

    measured = {row["operation"] for row in result["rows"]}
    operations = [operation for operation in catalogue.OPERATIONS if operation in measured]
    rows = -(-len(operations) // COLUMNS)
    figure, axes = pyplot.subplots(
        rows, COLUMNS, figsize=(3.2 * COLUMNS, 2.5 * rows + 0.8), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(operations) :]:
        axis.set_visible(False)
    for axis, operation in zip(axes.flat, operations, strict=False):
        for level, (colour, marker) in STYLE.items():
            sizes, ratios = points(result, level, operation)
            if sizes:
                axis.plot(sizes, ratios, color=colour, marker=marker, markersize=3, linewidth=1.2, label=NAMES[level])
        axis.axhline(1, color="black", linewidth=0.8, linestyle="--")
        axis.set(title=operation, xscale="log", yscale="log")
        axis.set_xticks([8, 1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28], ["8", "1K", "64K", "1M", "16M", "256M"])
        axis.set_xticks([], minor=True)
        axis.set_yticks([0.5, 1, 2, 5, 10, 20, 50, 100, 500], ["0.5", "1", "2", "5", "10", "20", "50", "100", "500"])
        axis.set_yticks([], minor=True)
        axis.grid(alpha=0.3)
        axis.tick_params(labelbottom=True)
    found = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=2)
    figure.suptitle(f"times as fast as the better peer, by bytes; {result['ranks']} ranks, commit {result['commit']}")
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


if __name__ == "__main__":
    draw(results.load(Path(sys.argv[1])), Path(sys.argv[2]))
