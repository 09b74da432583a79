"""Gives device memory back while the process lives on (`parked`), by all parkers that are needed, or by none.

When a later step fails, what was parked before returns. On real GPUs it stays off until it was seen to work on the machine (see
`verified`). All of it runs in the link thread.
"""

from __future__ import annotations

import json
import os
from typing import List, Optional

from . import cuda_state
from .errors import Reason, reason
from .parkers import CallbackParker, Parker, ParkFailed, SimulatedParker
from .torch_parking import TorchParker

VERIFIED = "park-verified.json"


class Parking:
    """All parkers of this process. `state_folder` is where hardware tests leave what they saw."""

    def __init__(self, state_folder: str) -> None:
        self._state_folder = state_folder
        self._callbacks = CallbackParker()
        self._simulated = SimulatedParker()
        self._torch = TorchParker()
        self._parked: List[Parker] = []

    def refusal(self, is_simulated: bool) -> Optional[Reason]:
        """Why parking would not work now, None when it would."""
        if not is_simulated and not verified(self._state_folder):
            return reason("unverified_hardware")
        memory = self._memory(is_simulated)
        if self._callbacks.applies():
            # The user says how memory moves; a parker that can helps, one that cannot is not needed.
            return self._callbacks.refusal()
        if not memory.applies():
            return reason("no_parker")
        uncovered = [] if is_simulated else _uncovered()
        if uncovered:
            return reason("library_not_covered", library=uncovered[0])
        return memory.refusal()

    def park(self, is_simulated: bool, deadline_s: float) -> int:
        """Move everything; the MiB that stay on the slot. Raises ParkFailed with everything where it was.

        `deadline_s` bounds the user's callbacks; a copy of memory that is under way is never broken off.
        """
        self._callbacks.deadline_s = deadline_s
        residue_mib = 0
        for parker in self._needed(is_simulated):
            try:
                residue_mib += parker.park()
            except ParkFailed:
                self._return_all()
                raise
            self._parked.append(parker)
        return residue_mib

    def unpark(self, deadline_s: float) -> None:
        """Bring everything back, last first. Raises ParkFailed; what is not back can be tried again."""
        self._callbacks.deadline_s = deadline_s
        failures: List[ParkFailed] = []
        while self._parked:
            try:
                self._parked[-1].unpark()
            except ParkFailed as error:
                if not error.is_back:
                    raise
                failures.append(error)
            self._parked.pop()
        if failures:
            raise failures[0]

    def _needed(self, is_simulated: bool) -> List[Parker]:
        memory = self._memory(is_simulated)
        able = memory.applies() and memory.refusal() is None
        return [
            *([self._callbacks] if self._callbacks.applies() else []),
            *([memory] if able else []),
        ]

    def _return_all(self) -> None:
        while self._parked:
            try:
                self._parked.pop().unpark()
            except ParkFailed:
                continue

    def _memory(self, is_simulated: bool) -> Parker:
        return self._simulated if is_simulated else self._torch


def verified(state_folder: str) -> bool:
    """Was parking seen to work with this machine's GPUs? A hardware test leaves a file that says so."""
    try:
        with open(os.path.join(state_folder, VERIFIED), encoding="utf-8") as file:
            return bool(json.load(file).get("verified"))
    except (OSError, ValueError, AttributeError):
        return False


def _uncovered() -> List[str]:
    """Loaded libraries whose device memory nobody here can move."""
    covered = ("torch", cuda_state.SIMULATED)
    return [name for name in cuda_state.loaded_libraries() if name not in covered]
