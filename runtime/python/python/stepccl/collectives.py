"""c10d's collectives, as both kinds of backend classes offer them.

Before: torch.distributed. After: `_core.Communicator`, the Rust half.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch._C._distributed_c10d import BarrierOptions
from torch.autograd import profiler

from . import _core, config, live, tensors
from .errors import TimeoutError, for_torch
from .tensors import Memory
from .work import Work, seconds

NAME = "stepccl"

Call = Callable[[Tensor, Any], Work]


class Collectives:
    """The part that is the same for every version of torch.

    Options objects come from c10d; only their fields that matter here are read. A synchronous
    call runs on the calling thread. Errors of arguments are raised before anything is started.
    """

    _communicator: _core.Communicator

    def _open(self, store: Any, rank: int, size: int, group: str, timeout: timedelta) -> None:
        """Meet the other ranks. Collective: every rank of the group calls it."""
        self._rank, self._size = rank, size
        self._timeout_s = timeout.total_seconds()
        self._sequence = 0
        self._closed = False
        self._error: Exception | None = None
        self._window: list[_core.Work] | None = None
        # A store may outlive a group and see another of the same name. Each rank counts for
        # itself; since all ranks make the same groups, they count alike.
        generation = store.add(f"{NAME}/generation/{rank}", 1)
        self._label = f"{group or 'default'}/{generation}"
        try:
            self._communicator = _core.Communicator(
                store, rank, size, self._label, self._timeout_s, config.snapshot()
            )
        except _core.Error as error:
            raise for_torch(error) from error.__cause__
        live.add(self._label, self)

    # What torch asks about the backend.

    def getBackendName(self) -> str:
        return NAME

    def stats(self) -> dict[str, Any]:
        """Counters of the communicator."""
        return self._communicator.stats()

    def set_timeout(self, timeout: timedelta) -> None:
        """Limit of operations started from now on, unless their options have one."""
        limit = timeout.total_seconds()
        if limit <= 0:
            raise ValueError(f"timeout = {timeout}: must be above 0")
        self._timeout_s = limit

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def _set_sequence_number_for_group(self) -> None:
        # The number starts at 0 on every rank; there is nothing to agree on.
        pass

    def shutdown(self) -> None:
        """Close the communicator; a second call does nothing."""
        self._closed = True
        live.remove(self._label)
        self._communicator.close()

    def abort(self) -> None:
        """Fail what is in flight, here and at the peers, then close."""
        if self._closed:
            return
        self._communicator.abort("the process group was aborted")
        self.shutdown()

    # One tensor, or one a rank.

    def allreduce(self, tensors_: Sequence[Tensor], opts: Any = None) -> Work:
        return self._each("all_reduce", tensors_, opts, self._all_reduce)

    def allreduce_coalesced(self, tensors_: Sequence[Tensor], opts: Any = None) -> Work:
        return self._each("all_reduce", tensors_, opts, self._all_reduce)

    def _all_reduce(self, tensor: Tensor, opts: Any) -> Work:
        memory = Memory()
        address = memory.update(tensor)
        return self._start("all_reduce", tensor, tensor.numel(), [address], [address], memory, opts, [tensor])

    def broadcast(self, tensors_: Sequence[Tensor], opts: Any = None) -> Work:
        return self._each("broadcast", tensors_, opts, self._broadcast)

    def _broadcast(self, tensor: Tensor, opts: Any) -> Work:
        memory = Memory()
        if self._rank == self._root("broadcast", opts):
            address = memory.read(tensor)
            # The root's own tensor keeps its value; what is written is the same.
            send, recv = [address], [address]
        else:
            send, recv = [], [memory.write(tensor)]
        return self._start("broadcast", tensor, tensor.numel(), send, recv, memory, opts, [tensor])

    def reduce(self, tensors_: Sequence[Tensor], opts: Any = None) -> Work:
        return self._each("reduce", tensors_, opts, self._reduce)

    def _reduce(self, tensor: Tensor, opts: Any) -> Work:
        memory = Memory()
        if self._rank == self._root("reduce", opts):
            send = recv = [memory.update(tensor)]
        else:
            send, recv = [memory.read(tensor)], []
        return self._start("reduce", tensor, tensor.numel(), send, recv, memory, opts, [tensor])

    def allgather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        what = "all_gather"
        self._same_length(what, outputs, inputs)
        return self._join(
            [self._all_gather_list(out, part, opts) for out, part in zip(outputs, inputs)]
        )

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        # Here the outer list has one entry a rank, and the inner ones one tensor an input.
        if len(outputs) != self._size or any(len(out) != len(inputs) for out in outputs):
            raise ValueError(
                f"all_gather: outputs of lengths {[len(out) for out in outputs]}; must be "
                f"{self._size} lists, one a rank, of {len(inputs)} tensors, one an input"
            )
        return self.allgather([list(parts) for parts in zip(*outputs)], inputs, opts)

    def _all_gather_list(self, outputs: Sequence[Tensor], part: Tensor, opts: Any) -> Work:
        even = tensors.same_blocks("all_gather", outputs, self._size, part)
        memory = Memory()
        send, recv = [memory.read(part)], [memory.write(out) for out in outputs]
        if not even:
            tensors.own_block("all_gather", outputs[self._rank], part)
            counts = ([part.numel()], [out.numel() for out in outputs])
            return self._start_uneven("all_gather", part, counts, send, recv, memory, opts, outputs)
        return self._start("all_gather", part, part.numel(), send, recv, memory, opts, outputs)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        tensors.joined_blocks("all_gather", output, input, self._size)
        memory = Memory()
        send, recv = [memory.read(input)], [memory.write(output)]
        return self._start("all_gather", input, input.numel(), send, recv, memory, opts, [output])

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        self._same_length("all_gather", outputs, inputs)
        return self._join([self.all_gather_single(o, i, opts) for o, i in zip(outputs, inputs)])

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any = None
    ) -> Work:
        self._same_length("reduce_scatter", outputs, inputs)
        return self._join(
            [self._reduce_scatter_list(out, parts, opts) for out, parts in zip(outputs, inputs)]
        )

    def _reduce_scatter_list(self, output: Tensor, parts: Sequence[Tensor], opts: Any) -> Work:
        even = tensors.same_blocks("reduce_scatter", parts, self._size, output)
        memory = Memory()
        send, recv = [memory.read(part) for part in parts], [memory.write(output)]
        if not even:
            tensors.own_block("reduce_scatter", parts[self._rank], output)
            counts = ([part.numel() for part in parts], [output.numel()])
            return self._start_uneven(
                "reduce_scatter", output, counts, send, recv, memory, opts, [output]
            )
        return self._start(
            "reduce_scatter", output, output.numel(), send, recv, memory, opts, [output]
        )

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        tensors.joined_blocks("reduce_scatter", input, output, self._size)
        memory = Memory()
        send, recv = [memory.read(input)], [memory.write(output)]
        return self._start(
            "reduce_scatter", output, output.numel(), send, recv, memory, opts, [output]
        )

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        self._same_length("reduce_scatter", outputs, inputs)
        return self._join([self.reduce_scatter_single(o, i, opts) for o, i in zip(outputs, inputs)])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def gather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        part = tensors.one("gather", inputs)
        memory = Memory()
        send, recv, results = [memory.read(part)], [], []
        if self._rank == self._root("gather", opts):
            self._same_length("gather", outputs, inputs)
            results = list(outputs[0])
            tensors.even_blocks("gather", results, self._size, part)
            recv = [memory.write(out) for out in results]
        elif any(len(out) for out in outputs):
            raise ValueError(f"gather: rank {self._rank} is not the root and must give no outputs")
        return self._start("gather", part, part.numel(), send, recv, memory, opts, results)

    def scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any = None
    ) -> Work:
        output = tensors.one("scatter", outputs)
        memory = Memory()
        send, recv = [], [memory.write(output)]
        if self._rank == self._root("scatter", opts):
            self._same_length("scatter", outputs, inputs)
            tensors.even_blocks("scatter", inputs[0], self._size, output)
            send = [memory.read(part) for part in inputs[0]]
        elif any(len(part) for part in inputs):
            raise ValueError(f"scatter: rank {self._rank} is not the root and must give no inputs")
        return self._start("scatter", output, output.numel(), send, recv, memory, opts, [output])

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_splits: Sequence[int] = (),
        input_splits: Sequence[int] = (),
        opts: Any = None,
    ) -> Work:
        what = "all_to_all"
        tensors.same_type(what, output, input)
        receive = self._splits(what, output, output_splits)
        sent = self._splits(what, input, input_splits)
        memory = Memory()
        send, recv = [memory.read(input)], [memory.write(output)]
        # A rank cannot see whether the splits of the others are even, so this is for all splits.
        if output_splits or input_splits:
            return self._start_uneven(
                what, input, (sent, receive), send, recv, memory, opts, [output]
            )
        tensors.joined_blocks(what, output, input, 1)
        count = input.numel() // self._size
        return self._start(what, input, count, send, recv, memory, opts, [output])

    alltoall_base = all_to_all_single

    def alltoall(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        what = "all_to_all"
        if not inputs:
            raise ValueError(f"{what}: no tensors given; one a rank is {self._size}")
        tensors.same_blocks(what, inputs, self._size, inputs[0])
        tensors.same_blocks(what, outputs, self._size, inputs[0])
        memory = Memory()
        send = [memory.read(part) for part in inputs]
        recv = [memory.write(part) for part in outputs]
        counts = ([part.numel() for part in inputs], [part.numel() for part in outputs])
        # A rank cannot see whether the blocks of the others are even.
        return self._start_uneven(what, inputs[0], counts, send, recv, memory, opts, outputs)

    def barrier(self, opts: Any = None) -> Work:
        return self._run("barrier", "uint8", "sum", 0, 0, [], [], Memory(), opts, [])

    def monitored_barrier(self, opts: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier that is waited for; its error names the ranks that are missing.

        With `wait_all_ranks` it names all of them, otherwise the first. `opts` may be a timeout.
        """
        what = "monitoredBarrier"
        if isinstance(opts, timedelta):
            limit, opts = opts, BarrierOptions()
            opts.timeout = limit
        limit_ms = None if opts is None else opts.timeout.total_seconds() * 1000
        if limit_ms == 0:
            raise TimeoutError(f"Rank {self._rank} timed out in {what}: its limit is 0 ms")
        try:
            self.barrier(opts).wait()
        except TimeoutError as error:
            found = re.search(r"waiting for ranks? ([0-9]+(?:, [0-9]+)*)", str(error))
            if found is None:
                raise
            first, *others = found[1].split(", ")
            who = f"Ranks {found[1]}" if wait_all_ranks and others else f"Rank {first}"
            raise TimeoutError(f"{who} failed to pass {what}: {error}") from error

    # Two ranks.

    def send(self, tensors_: Sequence[Tensor], dst: int, tag: int = 0) -> Work:
        return self._message("send", tensors_, dst, tag)

    def recv(self, tensors_: Sequence[Tensor], src: int, tag: int = 0) -> Work:
        return self._message("recv", tensors_, src, tag)

    def recv_anysource(self, tensors_: Sequence[Tensor], tag: int = 0) -> Work:
        return self._message("recv", tensors_, None, tag)

    def _message(self, what: str, given: Sequence[Tensor], peer: int | None, tag: int) -> Work:
        tensor = tensors.one(what, given)
        tensors.dtype_name(what, tensor)
        memory = Memory()
        address = memory.read(tensor) if what == "send" else memory.write(tensor)
        self._sequence += 1
        try:
            with self._label_in_trace(what):
                # Never synchronous: both sides of an exchange may send first.
                limit = self._timeout_s
                if peer is None:
                    part = self._communicator.recv_any(
                        address, tensor.nbytes, tag, memory.keep, False, limit
                    )
                else:
                    call = self._communicator.send if what == "send" else self._communicator.recv
                    part = call(address, tensor.nbytes, peer, tag, memory.keep, False, limit)
        except _core.Error as error:
            raise self._raised(error) from error.__cause__
        return self._work([part], [tensor], memory)

    # Several calls as one.

    def start_coalescing(self) -> None:
        """Collect the operations from here to end_coalescing."""
        self._window = []

    def end_coalescing(self) -> Work:
        """One handle for the operations since start_coalescing."""
        parts, self._window = self._window or [], None
        return Work(parts, [], (), self._failed)

    # Shared by all of the above.

    def _each(self, what: str, given: Sequence[Tensor], opts: Any, call: Call) -> Work:
        if len(given) == 1:
            return call(given[0], opts)
        if not given:
            raise ValueError(f"{what}: no tensors given")
        return self._join([call(tensor, opts) for tensor in given])

    def _join(self, works: Sequence[Work]) -> Work:
        if len(works) == 1:
            return works[0]
        return Work(
            [part for work in works for part in work._parts],
            [tensor for work in works for tensor in work._results],
            [pair for work in works for pair in work._restore],
            self._failed,
        )

    def _start(
        self,
        what: str,
        like: Tensor,
        count: int,
        send: list[int],
        recv: list[int],
        memory: Memory,
        opts: Any,
        results: Sequence[Tensor],
    ) -> Work:
        dtype = tensors.dtype_name(what, like)
        op = tensors.op_name(what, opts.reduceOp) if hasattr(opts, "reduceOp") else "sum"
        root = getattr(opts, "rootRank", 0)
        if count == 0:
            # All ranks give the same count, so all of them leave here.
            return self._work([], results, memory)
        return self._run(what, dtype, op, root, count, send, recv, memory, opts, results)

    def _run(
        self,
        what: str,
        dtype: str,
        op: str,
        root: int,
        count: int,
        send: list[int],
        recv: list[int],
        memory: Memory,
        opts: Any,
        results: Sequence[Tensor],
    ) -> Work:
        limit = seconds(opts.timeout) if opts is not None else None
        synchronous = opts is not None and not getattr(opts, "asyncOp", True)
        self._sequence += 1
        try:
            with self._label_in_trace(what):
                part = self._communicator.start(
                    what,
                    dtype,
                    op,
                    root,
                    count,
                    send,
                    recv,
                    memory.keep,
                    synchronous,
                    self._timeout_s if limit is None else limit,
                    tensors.factor(what, opts.reduceOp) if op == "mulsum" else 1.0,
                )
        except _core.Error as error:
            raise self._raised(error) from error.__cause__
        return self._work([part], results, memory)

    def _start_uneven(
        self,
        what: str,
        like: Tensor,
        counts: tuple[list[int], list[int]],
        send: list[int],
        recv: list[int],
        memory: Memory,
        opts: Any,
        results: Sequence[Tensor],
    ) -> Work:
        dtype = tensors.dtype_name(what, like)
        op = tensors.op_name(what, opts.reduceOp) if hasattr(opts, "reduceOp") else "sum"
        limit = seconds(opts.timeout) if opts is not None else None
        synchronous = opts is not None and not getattr(opts, "asyncOp", True)
        self._sequence += 1
        try:
            with self._label_in_trace(what):
                part = self._communicator.start_uneven(
                    what,
                    dtype,
                    op,
                    counts[0],
                    counts[1],
                    send,
                    recv,
                    memory.keep,
                    synchronous,
                    self._timeout_s if limit is None else limit,
                    tensors.factor(what, opts.reduceOp) if op == "mulsum" else 1.0,
                )
        except _core.Error as error:
            raise self._raised(error) from error.__cause__
        return self._work([part], results, memory)

    def _work(
        self, parts: list[_core.Work], results: Sequence[Tensor], memory: Memory
    ) -> Work:
        if self._window is not None:
            self._window.extend(parts)
        return Work(parts, results, memory.restore, self._failed)

    def _failed(self, error: Exception) -> None:
        self._error = self._error or error

    def _raised(self, error: _core.Error) -> _core.Error:
        self._failed(error)
        return for_torch(error)

    def _root(self, what: str, opts: Any) -> int:
        root = getattr(opts, "rootRank", 0)
        if not 0 <= root < self._size:
            raise ValueError(f"{what}: root {root}: must be a rank from 0 to {self._size - 1}")
        if getattr(opts, "rootTensor", 0) != 0:
            raise ValueError(f"{what}: rootTensor {opts.rootTensor}: must be 0 for CPU tensors")
        return root

    def _same_length(self, what: str, left: Sequence[Any], right: Sequence[Any]) -> None:
        if len(left) != len(right) or not left:
            raise ValueError(
                f"{what}: {len(left)} outputs and {len(right)} inputs; must be as many, at least 1"
            )

    def _splits(self, what: str, tensor: Tensor, splits: Sequence[int]) -> list[int]:
        """Elements of each block, from numbers of rows; even ones where there are none."""
        rows = tensor.size(0) if tensor.dim() else 1
        if not splits:
            if rows % self._size and tensor.numel():
                raise ValueError(
                    f"{what}: first dimension {rows}: must be a multiple of the {self._size} ranks"
                )
            return [tensor.numel() // self._size] * self._size
        if len(splits) != self._size or sum(splits) != rows or min(splits) < 0:
            raise ValueError(
                f"{what}: splits {list(splits)}: must be {self._size} numbers, none below 0, "
                f"that add up to {rows}"
            )
        return [split * (tensor.numel() // max(rows, 1)) for split in splits]

    def _label_in_trace(self, what: str) -> Any:
        if profiler._is_profiler_enabled:
            return torch.autograd.profiler.record_function(f"{NAME}:{what}")
        return _NO_LABEL


_NO_LABEL = nullcontext()
