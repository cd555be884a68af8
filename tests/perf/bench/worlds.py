"""Worlds: the rank processes of one library, which measure when they are told to.

A world lives through the whole run, so contenders are measured in turn without starting anything
in between. A rank sleeps between commands. Nothing waits for ever: a rank that does not answer in
time costs its world, which is ended and started anew.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

START_S = 120


class WorldError(Exception):
    """A world did not start, did not answer or answered with an error; the message says which."""


class World:
    """`ranks` processes that `command` starts."""

    def __init__(self, name, command, env, ranks):
        self.name, self.ranks, self.library = name, ranks, ""
        self.folder = Path(tempfile.mkdtemp(prefix="stepccl-bench-"))
        self.connections, self.processes = {}, []
        try:
            self._start(command, env)
        except BaseException:
            self.end()
            raise

    def _start(self, command, env):
        path = self.folder / "driver"
        env = dict(env, BENCH_SOCKET=str(path), BENCH_RANKS=str(self.ranks))
        self.errors = (self.folder / "errors").open("wb")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen(self.ranks)
            # An mpirun starts its ranks itself; others are started one by one.
            if "mpirun" in Path(command[0]).name:
                self._spawn(command, env)
            else:
                for rank in range(self.ranks):
                    store = self.folder / "store"
                    self._spawn(command, dict(env, BENCH_RANK=str(rank), BENCH_STORE=str(store)))
            until = time.monotonic() + START_S
            while len(self.connections) < self.ranks:
                self._accept(server, until)

    def _spawn(self, command, env):
        # A group of its own: Ctrl-C is for the driver, which then ends its worlds.
        self.processes.append(
            subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
                start_new_session=True,
            )
        )

    def _accept(self, server, until):
        server.settimeout(0.2)
        try:
            connection, _ = server.accept()
        except TimeoutError:
            dead = any(process.poll() is not None for process in self.processes)
            if dead or time.monotonic() > until:
                why = "ended" if dead else f"did not start in {START_S} s"
                raise WorldError(f"{self.name} {why}: {self._last_words()}") from None
            return
        connection.settimeout(None)
        _, rank, library = self._line(connection, until).split(" ", 2)
        self.connections[int(rank)] = connection
        self.library = " ".join(library.split())

    def _last_words(self):
        self.errors.flush()
        text = (self.folder / "errors").read_text(errors="replace").strip()
        return " / ".join(text.splitlines()[-8:]) or "without a word"

    def _line(self, connection, until):
        data = b""
        while not data.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([connection], [], [], left)[0]:
                raise WorldError(f"{self.name} did not answer in time")
            part = connection.recv(1 << 16)
            if not part:
                raise WorldError(f"{self.name} ended: {self._last_words()}")
            data += part
        return data.decode().rstrip("\n")

    def command(self, line, seconds):
        """Give every rank a line; their answers in order of rank, without `ok`."""
        until = time.monotonic() + seconds
        try:
            for connection in self.connections.values():
                connection.sendall(line.encode() + b"\n")
            answers = [self._line(self.connections[rank], until) for rank in range(self.ranks)]
        except OSError as error:
            raise WorldError(f"{self.name} ended: {error}; {self._last_words()}") from error
        for answer in answers:
            if not answer.startswith("ok"):
                raise WorldError(f"{self.name}: {answer.removeprefix('error ')}")
        return [answer[2:].strip() for answer in answers]

    def end(self):
        """End every process of the world; the folder goes too."""
        for connection in self.connections.values():
            with contextlib.suppress(OSError):
                connection.sendall(b"quit\n")
            connection.close()
        if self.connections:
            self._wait(3)
        for process in self.processes:
            # An mpirun passes SIGTERM on; what is then left of the group is killed.
            for sent in (signal.SIGTERM, signal.SIGKILL):
                if process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, sent)
                    self._wait(2)
            process.wait()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self, seconds):
        until = time.monotonic() + seconds
        while any(process.poll() is None for process in self.processes) and time.monotonic() < until:
            time.sleep(0.01)
