"""Carries out the broker's orders that are this process' own: give back by `empty` or `parked`, and return from `parked`.

Runs in the link thread, beside user code that rests at a prompt, a breakpoint or between cells; `MainThread.take_away` makes
sure of that. A failure leaves everything as it was. What others carry out (`checkpointed`, `restarted`) is only followed here.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from . import cuda_state
from .broker import View
from .environment import VisibleDevices
from .errors import Reason, reason
from .main_thread import MainThread
from .offer import Offers
from .parkers import ParkFailed
from .parking import Parking

OWN_KINDS = ("empty", "parked")
MARGIN_S = 2.0  # of an order's time, for the answer
UNDO_S = 60.0


class GiveBack:
    """`gave_up_devices` is called after an `empty` give-back, `damaged` with a reason when contents came back changed."""

    def __init__(
        self,
        main: MainThread,
        devices: VisibleDevices,
        parking: Parking,
        offers: Offers,
        gave_up_devices: Callable[[], None],
        damaged: Callable[[Reason], None],
    ) -> None:
        self._main = main
        self._devices = devices
        self._parking = parking
        self._offers = offers
        self._gave_up_devices = gave_up_devices
        self._damaged = damaged

    def carry_out(self, lease: View) -> Dict[str, Any]:
        """Do what `lease["order"]` says; the answer to POST."""
        order = lease["order"]
        deadline_s = max(order["due_in_ms"] / 1000 - MARGIN_S, 1.0)
        if order["resume"]:
            return self._answer(order, self._return(deadline_s))
        kind = order["kind"]
        why_not = self._offers.hindrance(kind) or self._offers.refusal(kind, lease["simulated"])
        if why_not is not None:
            return self._answer(order, why_not)
        if kind == "empty":
            return self._answer(order, self._empty())
        residue_mib, why_not = self._park(lease["simulated"], deadline_s)
        return self._answer(order, why_not, residue_mib)

    def undo(self, lease: View) -> None:
        """What was carried out came too late for the broker: back to how it was before."""
        order = lease["order"]
        if order["kind"] == "empty":
            self._devices.show(lease["visible_devices"])
        elif order["resume"]:
            self._park(lease["simulated"], UNDO_S)
        else:
            self._return(UNDO_S)

    def _empty(self) -> Optional[Reason]:
        before = ",".join(self._devices.lent)
        self._devices.hide()
        # Code that was let run may have been faster.
        if cuda_state.look().has_context:
            self._devices.show(before)
            return reason("context_alive")
        self._gave_up_devices()
        return None

    def _park(self, is_simulated: bool, deadline_s: float) -> Tuple[int, Optional[Reason]]:
        if not self._main.take_away("parked"):
            return 0, reason("cell_running")
        try:
            return self._parking.park(is_simulated, deadline_s), None
        except ParkFailed as error:
            self._main.brought_back()
            return 0, error.reason

    def _return(self, deadline_s: float) -> Optional[Reason]:
        try:
            self._parking.unpark(deadline_s)
        except ParkFailed as error:
            if not error.is_back:
                return error.reason
            self._damaged(error.reason)
        self._main.brought_back()
        return None

    def _answer(
        self, order: View, why_not: Optional[Reason], residue_mib: int = 0
    ) -> Dict[str, Any]:
        answer: Dict[str, Any] = {
            "number": order["number"],
            "ok": why_not is None,
            "residue_mib": residue_mib,
        }
        if why_not is not None:
            answer["reason"] = why_not
        return answer
