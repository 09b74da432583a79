"""Keeps this thread off a GPU whose memory is away: what would use it raises instead.

Paused memory that is touched ends the CUDA context for good, and what is allocated now would lie on somebody else's GPU.
PyTorch's operations are seen before they start, and those of simulated GPUs; code that reaches a GPU by other ways is not.
"""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager, Iterable, Iterator

from . import cuda_state
from .errors import GPUAway

_GPU = "cuda"


@contextlib.contextmanager
def cpu_only(sentence: str) -> Iterator[None]:
    """Until the end of the block, using the GPU from this thread raises GPUAway with `sentence`."""
    with contextlib.ExitStack() as stack:
        simulated = cuda_state.loaded(cuda_state.SIMULATED)
        if simulated is not None:
            stack.enter_context(simulated.withheld(GPUAway(sentence)))
        torch = cuda_state.loaded("torch")
        if torch is not None:
            stack.enter_context(_torch_guard(torch, sentence))
        yield


def _torch_guard(torch: Any, sentence: str) -> ContextManager[Any]:
    from torch.utils._python_dispatch import TorchDispatchMode

    mode: Any = TorchDispatchMode

    class Guard(mode):  # type: ignore[misc]
        """Sees every operation of this thread, those of autograd and of `repr` as well."""

        def __torch_dispatch__(
            self, operation: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if _is_on_gpu(torch, [*args, *kwargs.values()]):
                raise GPUAway(sentence)
            return operation(*args, **kwargs)

    made: ContextManager[Any] = Guard()
    return made


def _is_on_gpu(torch: Any, values: Iterable[Any]) -> bool:
    """Is a tensor on the GPU, or the GPU as a device, among the arguments of an operation?"""
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.device.type == _GPU:
                return True
        elif isinstance(value, torch.device):
            if value.type == _GPU:
                return True
        elif isinstance(value, (list, tuple)) and _is_on_gpu(torch, value):
            return True
    return False
