"""The measurement: every operation and size, all contenders of a level in turn, round after round."""

import statistics
from dataclasses import dataclass

from . import catalogue
from .worlds import WorldError

ANSWER_S = 120


@dataclass(frozen=True)
class Effort:
    """How long to look at one size."""

    rounds: int
    # Microseconds of a sample: many short calls, or one long one.
    sample_us: float
    # Microseconds of a contender's turn.
    turn_us: float
    most_samples: int
    # Larger results are not checked: writing and reading them takes longer than the measurement.
    check_bytes: int


FULL = Effort(rounds=5, sample_us=1500, turn_us=15000, most_samples=9, check_bytes=256 * catalogue.MIB)
QUICK = Effort(rounds=3, sample_us=1000, turn_us=8000, most_samples=7, check_bytes=16 * catalogue.MIB)


def slowest(answers):
    """Times of samples: the slowest rank's, for each sample."""
    return [max(times) for times in zip(*([float(ns) for ns in answer.split()] for answer in answers), strict=True)]


class Turn:
    """One contender at one operation and size."""

    def __init__(self, world, operation, nbytes, effort):
        self.world, self.effort, self.samples = world, effort, []
        self.what = f"{operation} {nbytes}"
        if nbytes <= effort.check_bytes and not operation.startswith("copy"):
            world.command(f"check {self.what}", ANSWER_S)
        once_us = max(min(self._measure(1, 1, 3)) / 1e3, 0.01)
        self.calls = min(max(round(effort.sample_us / once_us), 1), 5000)
        turn = effort.turn_us / (self.calls * once_us)
        self.number = min(max(round(turn), 2), effort.most_samples)

    def _measure(self, warmup, calls, samples):
        return slowest(self.world.command(f"measure {self.what} {warmup} {calls} {samples}", ANSWER_S))

    def take(self):
        """Measure for one turn."""
        self.samples += self._measure(max(self.calls // 2, 1), self.calls, self.number)


def summary(samples_ns, scale):
    """Microseconds of a call: the median and where the samples lie."""
    us = sorted(ns * scale / 1e3 for ns in samples_ns)
    return {
        "median_us": round(statistics.median(us), 4),
        "min_us": round(us[0], 4),
        "p90_us": round(us[min(len(us) * 9 // 10, len(us) - 1)], 4),
        "samples": len(us),
    }


def size(worlds, operation, nbytes, effort, fail):
    """Measure one operation and size with every contender in turn: {name: summary}.

    `worlds` gives a world by name, and starts it where needed. A contender that fails is left out
    and `fail(name, message)` is told.
    """
    turns = {}

    def attempt(name, action):
        try:
            return action()
        except WorldError as error:
            turns.pop(name, None)
            worlds.drop(name)
            fail(name, str(error))
            return None

    for name in worlds.names:
        turn = attempt(name, lambda name=name: Turn(worlds.get(name), operation, nbytes, effort))
        if turn:
            turns[name] = turn
    for number in range(effort.rounds):
        names = list(turns)
        # Who is first changes from round to round.
        first = number % max(len(names), 1)
        for name in names[first:] + names[:first]:
            attempt(name, turns[name].take)
    scale = catalogue.calls_to_time(operation)
    return {name: summary(turn.samples, scale) for name, turn in turns.items() if turn.samples}
