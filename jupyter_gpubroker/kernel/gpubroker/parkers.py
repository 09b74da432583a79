"""Ways to move device memory to the host and back inside the living process: the protocol, and those for any library.

A parker changes nothing until `park`, and `unpark` verifies what it brings back. That of PyTorch is in `torch_parking`; how
they work together, in `parking`.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional

from . import callbacks, cuda_state
from .errors import Reason, reason
from .main_thread import daemon


class ParkFailed(Exception):
    """It did not work; `reason` says why. `is_back` tells whether the memory is on the device nevertheless."""

    def __init__(self, why: Reason, is_back: bool = False) -> None:
        super().__init__(why["code"])
        self.reason = why
        self.is_back = is_back


class Parker:
    """One way to move memory."""

    def applies(self) -> bool:
        """Has it anything to do in this process?"""
        return True

    def refusal(self) -> Optional[Reason]:
        """Why it would not work now."""
        return None

    def park(self) -> int:
        """Move memory to the host; the MiB of device memory that stay, per slot. Raises ParkFailed with nothing moved."""
        raise AssertionError("every parker parks")

    def unpark(self) -> None:
        """Bring it back, verified. Raises ParkFailed."""
        raise AssertionError("every parker comes back")


class CallbackParker(Parker):
    """The user's own functions. They run beside the main thread, for `deadline_s` at most."""

    def __init__(self) -> None:
        self.deadline_s = 30.0
        self._is_late = False

    def applies(self) -> bool:
        return any(callbacks.registered())

    def refusal(self) -> Optional[Reason]:
        return reason("callback_late") if self._is_late else None

    def park(self) -> int:
        there, back = callbacks.registered()
        try:
            self._run(there)
        except ParkFailed:
            if not self._is_late:
                self._run(back)
            raise
        return 0

    def unpark(self) -> None:
        self._run(callbacks.registered()[1])

    def _run(self, chosen: List[Callable[[], Any]]) -> None:
        failures: List[str] = []
        done = threading.Event()

        def run() -> None:
            try:
                for callback in chosen:
                    callbacks.call(callback)
            except BaseException as error:  # noqa: BLE001 - code of the user's may raise anything
                failures.append(f"{type(error).__name__}: {error}"[:200])
            finally:
                done.set()

        daemon(run, "gpubroker-callbacks")
        if not done.wait(self.deadline_s):
            self._is_late = True
            raise ParkFailed(reason("callback_late"), is_back=True)
        if failures:
            raise ParkFailed(reason("callback_failed", error=failures[0]), is_back=True)


class SimulatedParker(Parker):
    """For simulated GPUs, with the rules of real ones: the context stays, and contents are compared."""

    def __init__(self) -> None:
        self._checksums: Dict[int, str] = {}

    def applies(self) -> bool:
        simulated = cuda_state.loaded(cuda_state.SIMULATED)
        return simulated is not None and bool(simulated.is_initialized())

    def refusal(self) -> Optional[Reason]:
        simulated = cuda_state.loaded(cuda_state.SIMULATED)
        return (
            reason("cuda_unusable") if simulated is not None and simulated.is_poisoned() else None
        )

    def park(self) -> int:
        simulated = cuda_state.loaded(cuda_state.SIMULATED)
        assert simulated is not None
        before = simulated.checksums()
        try:
            simulated.pause()
        except simulated.BusyError:
            raise ParkFailed(reason("gpu_busy")) from None
        self._checksums = before
        return int(simulated.CONTEXT_MIB)

    def unpark(self) -> None:
        simulated = cuda_state.loaded(cuda_state.SIMULATED)
        assert simulated is not None
        try:
            simulated.resume()
        except simulated.OutOfMemoryError:
            raise ParkFailed(reason("gpu_memory_short")) from None
        before, after = self._checksums, simulated.checksums()
        if any(after[address] != before[address] for address in before.keys() & after.keys()):
            raise ParkFailed(reason("contents_changed"), is_back=True)
