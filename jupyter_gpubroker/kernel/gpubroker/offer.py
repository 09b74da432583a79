"""Which give-backs work for this process, and why the others do not.

Found out at run time, never assumed; the broker joins it with what the Jupyter server offers (`checkpointed`) and with what is
seen on the device. The same answers stand behind `%gpu release`.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from . import cuda_state
from .errors import Reason, reason
from .main_thread import MainThread
from .parking import Parking

KINDS = ("empty", "parked", "restarted")


class Offers:
    """`asks_at_first_use` tells whether an import of a GPU library would ask for a GPU anew. `consents`: to a restart."""

    def __init__(
        self, main: MainThread, parking: Parking, asks_at_first_use: Callable[[], bool]
    ) -> None:
        self._main = main
        self._parking = parking
        self._asks_at_first_use = asks_at_first_use
        self.consents = False

    def body(self, is_simulated: bool) -> Dict[str, Any]:
        """What to POST as the session's offer."""
        refusals = {kind: self.refusal(kind, is_simulated) for kind in KINDS}
        if cuda_state.uses_nccl():
            # Suspending is offered by the Jupyter server, which cannot see this from outside.
            refusals["checkpointed"] = reason("nccl_in_use")
        return {
            "kinds": [kind for kind in KINDS if refusals[kind] is None],
            "refusals": {kind: why for kind, why in refusals.items() if why is not None},
        }

    def refusal(self, kind: str, is_simulated: bool) -> Optional[Reason]:
        """Why `kind` does not work for this process, None when it does. What runs just now is left to `hindrance`."""
        if kind == "restarted":
            return None if self.consents else reason("no_consent")
        has_context = cuda_state.look().has_context
        if kind == "empty":
            return reason("context_alive") if has_context else None
        if not has_context:
            return reason("nothing_to_park")
        return self._parking.refusal(is_simulated)

    def hindrance(self, kind: str) -> Optional[Reason]:
        """Code that runs and must not lose the GPU. Where a first use would ask for a GPU anew, `empty` does it no harm."""
        asks_anew = self._asks_at_first_use() and not cuda_state.loaded_libraries()
        if self._main.is_busy and not (kind == "empty" and asks_anew):
            return reason("cell_running")
        return None
