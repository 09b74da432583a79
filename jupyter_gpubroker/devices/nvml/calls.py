"""One reading's calls to the library: each answers, or leaves a word on why it did not.

Symbols that an older driver lacks and calls that a device does not offer are no problems: they are what this device is,
and are not asked again until the next inventory. Everything else that fails is told by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pynvml

from ..reader import Missing, Signal

Handle = Any
# (device, call) that are not offered.
Refusals = set[tuple[str, str]]

FAILURES = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError)
# With a driver older than the binding a symbol is missing (FunctionNotFound, LibraryMismatch) or takes another structure.
NOT_OFFERED = (
    "NotSupported", "FunctionNotFound", "LibraryMismatch", "ArgumentVersionMismatch", "Deprecated",
)  # fmt: skip


class Calls:
    """`device` names whom the calls are about; `refusals` outlives the reading."""

    def __init__(self, device: str = "", refusals: Refusals | None = None) -> None:
        self.problems: list[str] = []
        self.missing: dict[Signal, Missing] = {}
        self._device = device
        self._refusals: Refusals = set() if refusals is None else refusals

    def ask(
        self, call: Callable[..., Any], *arguments: Any, expected: Sequence[str] = ()
    ) -> Any | None:
        """The call's answer; None, and a problem unless the error was expected."""
        try:
            return call(*arguments)
        except FAILURES as error:
            name = error_name(error)
            if name not in expected:
                self.problems.append(f"{call.__name__}: {name}")
            return None

    def ask_for(self, signal: Signal, call: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
        """The answer and the error's name, one of them empty; `missing` says why the signal is not there."""
        key = (self._device, call.__name__)
        if key in self._refusals:
            self.missing[signal] = "not_supported"
            return None, "NotSupported"
        try:
            answer = call(*arguments)
        except FAILURES as error:
            name = error_name(error)
            self.missing[signal] = reason_of(name)
            if name in NOT_OFFERED:
                self._refusals.add(key)
            else:
                self.problems.append(f"{call.__name__}: {name}")
            return None, name
        self.missing.pop(signal, None)
        return answer, ""

    def first_of(self, signal: Signal, calls: Sequence[Callable[..., Any]], *arguments: Any) -> Any:
        """The answer of the first version of a call that this driver has."""
        for call in calls:
            answer, error = self.ask_for(signal, call, *arguments)
            if error not in NOT_OFFERED:
                return answer
        return None

    def lack(self, signal: Signal, why: Missing) -> None:
        self.missing[signal] = why

    @property
    def is_lost(self) -> bool:
        """Whether the device has fallen off the bus."""
        return any(problem.endswith(": GpuIsLost") for problem in self.problems)


def error_name(error: Exception) -> str:
    """`NotSupported` for `NVMLError_NotSupported`; base class errors by their text ("Success", or "NVML Error with ...")."""
    if isinstance(error, pynvml.NVMLLibraryMismatchError):
        return "LibraryMismatch"
    name = type(error).__name__.removeprefix("NVMLError").removeprefix("_")
    if name:
        return name
    return "Success" if getattr(error, "value", None) == 0 else str(error)


def reason_of(name: str) -> Missing:
    if name in NOT_OFFERED:
        return "not_supported"
    return "no_permission" if name == "NoPermission" else "failed"


def mib(size_bytes: int) -> int:
    """Rounded up."""
    return -(-size_bytes // (1 << 20))
