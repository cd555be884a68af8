"""c10d's collectives, as both kinds of backend classes offer them.

Before: torch.distributed. After: `runtime/python/python/stepccl/operations.py`.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._C._distributed_c10d import BarrierOptions, ReduceOp

from . import _core, blocks, sparse
from .errors import NotSupportedError, TimeoutError
from .messages import Messages
from .work import Work

Counts = int | tuple[list[int], list[int]]


class Collectives(Messages):
    """The part that is the same for every version of torch.

    Options objects come from c10d; only their fields that matter here are read. A synchronous
    call runs on the calling thread. Errors of arguments are raised before anything is started.
    """

    def _start(
        self,
        what: str,
        count: Counts,
        send: list[Tensor],
        recv: list[Tensor],
        opts: Any,
        results: Sequence[Tensor],
        root: int = 0,
    ) -> Work | None:
        call = self._communicator.collective
        return self._submit(
            what, call, send, recv, results, what, root, count, opts, self._timeout_s
        )

    # One tensor.

    def allreduce(self, tensors: Sequence[Tensor], opts: Any = None) -> Work | None:
        if len(tensors) == 1:
            return self._all_reduce(tensors[0], opts)
        return self._each("all_reduce", tensors, opts, self._all_reduce)

    allreduce_coalesced = allreduce

    def _all_reduce(self, tensor: Tensor, opts: Any) -> Work | None:
        both = [tensor]
        what, call = "all_reduce", self._communicator.collective
        try:
            return self._submit(
                what, call, both, both, both, what, 0, tensor.numel(), opts, self._timeout_s
            )
        except _core.NotDense:
            return self._sparse_all_reduce(tensor, opts)

    def _sparse_all_reduce(self, tensor: Tensor, opts: Any) -> Work | None:
        """The call waits for the number of elements of all ranks, also where it is asynchronous."""
        if opts is not None and opts.reduceOp != ReduceOp.SUM:
            raise NotSupportedError("all_reduce: sparse tensors can be added only: reduce op SUM")
        if self._window is not None:
            raise NotSupportedError(
                "all_reduce: a sparse tensor together with other operations; give it alone"
            )
        parts = sparse.Parts(tensor)
        heads = [torch.empty_like(parts.head) for _ in range(self._size)]
        now = sparse.Now(timedelta(0) if opts is None else opts.timeout)
        self._all_gather_list(heads, parts.head, now)
        parts.make_room(heads)
        call = self._all_gather_list
        sides = (parts.all_indices, parts.indices), (parts.all_values, parts.values)
        return self._together(opts, (partial(call, *s, opts) for s in sides), parts.add_up, [tensor])

    def broadcast(self, tensors: Sequence[Tensor], opts: Any = None) -> Work | None:
        return self._each("broadcast", tensors, opts, self._broadcast)

    def _broadcast(self, tensor: Tensor, opts: Any) -> Work | None:
        root = self._root("broadcast", opts)
        one = [tensor]
        # The root's own tensor keeps its value; what is written is the same.
        send = one if self._rank == root else []
        return self._start("broadcast", tensor.numel(), send, one, opts, one, root)

    def reduce(self, tensors: Sequence[Tensor], opts: Any = None) -> Work | None:
        return self._each("reduce", tensors, opts, self._reduce)

    def _reduce(self, tensor: Tensor, opts: Any) -> Work | None:
        root = self._root("reduce", opts)
        one = [tensor]
        recv = one if self._rank == root else []
        return self._start("reduce", tensor.numel(), one, recv, opts, one, root)

    # One tensor a rank.

    def allgather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work | None:
        blocks.same_length("all_gather", outputs, inputs)
        if len(inputs) == 1:
            return self._all_gather_list(outputs[0], inputs[0], opts)
        call = self._all_gather_list
        return self._together(opts, (partial(call, *p, opts) for p in zip(outputs, inputs)))

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work | None:
        # Here the outer list has one entry a rank, and the inner ones one tensor an input.
        if len(outputs) != self._size or any(len(out) != len(inputs) for out in outputs):
            raise ValueError(
                f"all_gather: outputs of lengths {[len(out) for out in outputs]}; must be "
                f"{self._size} lists, one a rank, of {len(inputs)} tensors, one an input"
            )
        return self.allgather([list(parts) for parts in zip(*outputs)], inputs, opts)

    def _all_gather_list(self, outputs: Sequence[Tensor], part: Tensor, opts: Any) -> Work | None:
        counts: Counts = part.numel()
        if not blocks.same_blocks("all_gather", outputs, self._size, part):
            blocks.own_block("all_gather", outputs[self._rank], part)
            counts = ([part.numel()], [out.numel() for out in outputs])
        return self._start("all_gather", counts, [part], list(outputs), opts, outputs)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work | None:
        blocks.joined_blocks("all_gather", output, input, self._size)
        one = [output]
        return self._start("all_gather", input.numel(), [input], one, opts, one)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work | None:
        blocks.same_length("all_gather", outputs, inputs)
        call = self.all_gather_single
        return self._together(opts, (partial(call, *p, opts) for p in zip(outputs, inputs)))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any = None
    ) -> Work | None:
        blocks.same_length("reduce_scatter", outputs, inputs)
        if len(outputs) == 1:
            return self._reduce_scatter_list(outputs[0], inputs[0], opts)
        call = self._reduce_scatter_list
        return self._together(opts, (partial(call, *p, opts) for p in zip(outputs, inputs)))

    def _reduce_scatter_list(
        self, output: Tensor, parts: Sequence[Tensor], opts: Any
    ) -> Work | None:
        counts: Counts = output.numel()
        if not blocks.same_blocks("reduce_scatter", parts, self._size, output):
            blocks.own_block("reduce_scatter", parts[self._rank], output)
            counts = ([part.numel() for part in parts], [output.numel()])
        one = [output]
        return self._start("reduce_scatter", counts, list(parts), one, opts, one)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work | None:
        blocks.joined_blocks("reduce_scatter", input, output, self._size)
        one = [output]
        return self._start("reduce_scatter", output.numel(), [input], one, opts, one)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work | None:
        blocks.same_length("reduce_scatter", outputs, inputs)
        call = self.reduce_scatter_single
        return self._together(opts, (partial(call, *p, opts) for p in zip(outputs, inputs)))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def gather(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work | None:
        part = blocks.one("gather", inputs)
        root, results = self._root("gather", opts), []
        if self._rank == root:
            blocks.same_length("gather", outputs, inputs)
            results = list(outputs[0])
            self._even_blocks("gather", results, part)
        elif any(len(out) for out in outputs):
            raise ValueError(f"gather: rank {self._rank} is not the root and must give no outputs")
        return self._start("gather", part.numel(), [part], results, opts, results, root)

    def scatter(
        self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any = None
    ) -> Work | None:
        output = blocks.one("scatter", outputs)
        root, send, one = self._root("scatter", opts), [], [output]
        if self._rank == root:
            blocks.same_length("scatter", outputs, inputs)
            send = list(inputs[0])
            self._even_blocks("scatter", send, output)
        elif any(len(part) for part in inputs):
            raise ValueError(f"scatter: rank {self._rank} is not the root and must give no inputs")
        return self._start("scatter", output.numel(), send, one, opts, one, root)

    def _even_blocks(self, what: str, listed: Sequence[Tensor], like: Tensor) -> None:
        """Check the root's list. Only the root can see that it is uneven, while the others have
        started and would wait for it: they are told why it does not come.
        """
        try:
            blocks.even_blocks(what, listed, self._size, like)
        except NotSupportedError as error:
            self._communicator.abort(str(error))
            raise

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_splits: Sequence[int] = (),
        input_splits: Sequence[int] = (),
        opts: Any = None,
    ) -> Work | None:
        what = "all_to_all"
        blocks.same_type(what, output, input)
        receive = blocks.splits(what, output, output_splits, self._size)
        sent = blocks.splits(what, input, input_splits, self._size)
        # A rank cannot see whether the splits of the others are even, so this is for all splits.
        counts: Counts = (sent, receive)
        if not output_splits and not input_splits:
            blocks.joined_blocks(what, output, input, 1)
            counts = input.numel() // self._size
        one = [output]
        return self._start(what, counts, [input], one, opts, one)

    alltoall_base = all_to_all_single

    def alltoall(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work | None:
        what = "all_to_all"
        if not inputs:
            raise ValueError(f"{what}: no tensors given; one a rank is {self._size}")
        blocks.same_blocks(what, inputs, self._size, inputs[0])
        blocks.same_blocks(what, outputs, self._size, inputs[0])
        # A rank cannot see whether the blocks of the others are even.
        counts = ([part.numel() for part in inputs], [part.numel() for part in outputs])
        return self._start(what, counts, list(inputs), list(outputs), opts, outputs)

    # No tensor.

    def barrier(self, opts: Any = None) -> Work | None:
        return self._start("barrier", 0, [], [], opts, [])

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
            work = self.barrier(opts)
            if work is not None:
                work.wait()
        except TimeoutError as error:
            found = re.search(r"waiting for ranks? ([0-9]+(?:, [0-9]+)*)", str(error))
            if found is None:
                raise
            first, *others = found[1].split(", ")
            who = f"Ranks {found[1]}" if wait_all_ranks and others else f"Rank {first}"
            raise TimeoutError(f"{who} failed to pass {what}: {error}") from error

    def _root(self, what: str, opts: Any) -> int:
        root: int = getattr(opts, "rootRank", 0)
        if not 0 <= root < self._size:
            raise ValueError(f"{what}: root {root}: must be a rank from 0 to {self._size - 1}")
        if getattr(opts, "rootTensor", 0) != 0:
            raise ValueError(f"{what}: rootTensor {opts.rootTensor}: must be 0 for CPU tensors")
        return root
