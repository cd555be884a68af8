"""How far a run is, and how long the rest takes."""

import sys
import time

# A log gets a line this often; a terminal one line that changes.
LOG_S = 20


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    """Progress over steps with known weights, on standard error."""

    def __init__(self, total, stream=sys.stderr, clock=time.monotonic):
        self.total, self.stream, self.clock = total, stream, clock
        self.done = 0.0
        self.started = clock()
        self.said = None
        self.terminal = stream.isatty()

    def line(self, what):
        spent = self.clock() - self.started
        part = min(self.done / self.total, 1.0)
        left = f", about {minutes(spent / part - spent)} left" if part > 0.02 else ""
        return f"{100 * part:3.0f} % after {minutes(spent)}{left}: {what}"

    def step(self, what, weight):
        """Say that `what` begins; the step before it is done."""
        now = self.clock()
        if self.terminal:
            print(f"\r\033[K{self.line(what)}", end="", file=self.stream, flush=True)
        elif self.said is None or now - self.said >= LOG_S:
            print(self.line(what), file=self.stream, flush=True)
            self.said = now
        self.done += weight

    def note(self, text):
        """Something worth a line of its own."""
        start = "\r\033[K" if self.terminal else ""
        print(f"{start}{text}", file=self.stream, flush=True)

    def end(self):
        if self.terminal:
            print("\r\033[K", end="", file=self.stream, flush=True)
