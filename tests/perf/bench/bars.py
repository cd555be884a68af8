"""The bars that a run is held against, and whether they hold."""

from collections.abc import Callable
from dataclasses import dataclass

from . import catalogue, results, table
from .catalogue import KIB, MIB

REDUCING = ("all_reduce", "reduce_scatter")
COPYING = ("all_gather", "broadcast", "all_to_all")


@dataclass(frozen=True)
class Bar:
    """At least `least` for every row that `applies` to, of what `value` reads from it."""

    words: str
    least: float
    applies: Callable
    value: Callable
    show: Callable


def percent(part):
    return f"{100 * part:.0f} %"


def ratio_bar(words, least, applies, level="native"):
    return Bar(
        words,
        least,
        lambda row: row["level"] == level and applies(row["operation"], row["bytes"]),
        lambda _, row: results.ratio(row),
        table.times,
    )


BARS = [
    ratio_bar("all_reduce, reduce_scatter to 1 KiB", 5, lambda op, n: op in REDUCING and n <= KIB),
    ratio_bar("all_reduce, reduce_scatter, 64 KiB", 3, lambda op, n: op in REDUCING and n == 64 * KIB),
    ratio_bar("all_reduce, reduce_scatter, 1 to 16 MiB", 2.2, lambda op, n: op in REDUCING and MIB <= n <= 16 * MIB),
    ratio_bar("all_reduce, reduce_scatter, 128 MiB", 4, lambda op, n: op in REDUCING and n == 128 * MIB),
    ratio_bar("every other operation to 1 KiB", 3, lambda op, n: op not in REDUCING and n <= KIB),
    ratio_bar("every other operation, every size", 1, lambda op, _: op not in REDUCING),
    Bar(
        "all_gather, broadcast, all_to_all from 16 MiB, of the copy bound",
        0.9,
        lambda row: row["level"] == "native" and row["operation"] in COPYING and row["bytes"] >= 16 * MIB,
        table.bound,
        percent,
    ),
    ratio_bar("torch, every operation to 64 KiB", 20, lambda _, n: n <= 64 * KIB, "torch"),
    ratio_bar("torch, every operation above 64 KiB", 3, lambda _, n: n > 64 * KIB, "torch"),
]


@dataclass(frozen=True)
class Verdict:
    """What a run says of a bar: (value, operation, bytes) of every row, the worst first."""

    bar: Bar
    rows: list
    # Rows that the bar is about and that have no figure.
    missing: list

    @property
    def misses(self):
        return [row for row in self.rows if row[0] < self.bar.least]

    @property
    def holds(self):
        return bool(self.rows) and not self.misses and not self.missing


def verdicts(result):
    for bar in BARS:
        rows, missing = [], []
        for row in filter(bar.applies, result["rows"]):
            value = bar.value(result, row)
            place = (row["operation"], row["bytes"])
            if value is None:
                missing.append(place)
            else:
                rows.append((value, *place))
        yield Verdict(bar, sorted(rows), missing)


def lines(result):
    """One line a bar, and one for each row that misses it."""
    for verdict in verdicts(result):
        bar = verdict.bar
        if not verdict.rows and not verdict.missing:
            yield f"not run  {bar.words}"
            continue
        state = "holds " if verdict.holds else "MISSES"
        worst = f"; the worst {bar.show(verdict.rows[0][0])}" if verdict.rows else ""
        count = f"{len(verdict.misses)} of {len(verdict.rows)} below" if verdict.misses else f"{len(verdict.rows)} figures"
        yield f"{state}   {bar.words}: at least {bar.show(bar.least)}{worst}, {count}"
        for value, operation, nbytes in verdict.misses:
            yield f"           {operation} {catalogue.show_size(nbytes)}: {bar.show(value)}"
        for operation, nbytes in verdict.missing:
            yield f"           {operation} {catalogue.show_size(nbytes)}: no figure"
