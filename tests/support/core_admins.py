"""What admins may do to a core under a state machine, at any moment."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from jupyter_gpubroker.core.events import (
    Event,
    GpuDisabled,
    GpuEnabled,
    LeaseRevoked,
    ModeSet,
    QuarantineCleared,
)
from jupyter_gpubroker.core.model import Mode, Owner
from tests.support.core_machine import CheckedBroker

ADMIN = Owner("admin")
picks = st.integers(0, 1_000_000)


class AdministeredBroker(CheckedBroker):
    """The rules are as blind to the core's as the others."""

    @rule(mode=st.sampled_from(Mode), pick=picks, of=st.sampled_from(["all", "gpu", "group"]))
    def mode_is_set(self, mode: Mode, pick: int, of: str) -> None:
        gpus = [*self.state.gpus]
        gpu_id = gpus[pick % len(gpus)] if of == "gpu" else None
        self.do(ModeSet(ADMIN, mode, gpu_id, "staff" if of == "group" else None))

    @rule(pick=picks, back=st.booleans())
    def gpu_is_taken_out_or_put_back(self, pick: int, back: bool) -> None:
        gpus = [*self.state.gpus]
        gpu_id = gpus[pick % len(gpus)]
        event: Event = GpuEnabled(ADMIN, gpu_id) if back else GpuDisabled(ADMIN, gpu_id, "why")
        self.do(event)

    @rule(pick=picks)
    def admin_vouches_for_a_slot(self, pick: int) -> None:
        slots = [*self.state.slots]
        self.do(QuarantineCleared(ADMIN, slots[pick % len(slots)], "why"))

    @rule(pick=picks, notice_ms=st.sampled_from([0, 1_000, 300_000]))
    def lease_is_revoked(self, pick: int, notice_ms: int) -> None:
        lease = self.a_lease(pick)
        if lease is not None:
            self.do(LeaseRevoked(ADMIN, lease.id, "why", notice_ms))

    def nothing_is_stuck(self) -> None:
        for gpu_id in [*self.state.withdrawals]:
            self.do(GpuEnabled(ADMIN, gpu_id))
        super().nothing_is_stuck()
