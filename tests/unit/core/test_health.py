"""A GPU that reported a fault leaves the pool, its holder is told, and it comes back when it is to be trusted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpubroker.core.decide import next_deadline
from jupyter_gpubroker.core.events import (
    GpuEnabled,
    GpuFault,
    GpuSeen,
    GpusObserved,
    NodeUnobserved,
    PolicyApplied,
    Ticked,
)
from jupyter_gpubroker.core.explain import lease_sentence
from jupyter_gpubroker.core.model import (
    GpuId,
    LeaseState,
    Owner,
    Reason,
    RequestState,
    SlotId,
    SlotSpec,
    SlotState,
)
from jupyter_gpubroker.core.rules import DEFAULT_FAULTS, FaultRule, Remedy
from tests.support.core_world import MINUTE, NODE, SECOND, World, inventory, slice_of, whole

GPU = GpuId("GPU-0")
PROBATION_MS = 10 * MINUTE


def complains(world: World, *faults: GpuFault, action: str | None = None) -> None:
    world.do(GpusObserved(NODE, (GpuSeen(GPU, action, faults),)))


def xid(code: int, slot_id: str | None = None) -> GpuFault:
    return GpuFault("xid", code, None if slot_id is None else SlotId(slot_id))


def test_a_faulty_gpu_lends_nothing_new_and_its_holder_is_told_what_to_do() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("k")
    complains(world, xid(95))
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    assert world.slot("GPU-1").state is SlotState.FREE
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.ACTIVE
    english, spanish = lease_sentence(world.state, lease, world.now)
    assert "Xid 95" in english
    assert "Save your work" in english
    assert "the admin should reset it" in english
    assert "Xid 95" in spanish
    world.ends("k")
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert (world.slot("GPU-0").state, world.slot("GPU-0").lease_id) == (
        SlotState.QUARANTINED,
        None,
    )


def test_a_fault_of_the_users_program_is_told_to_its_holder_alone() -> None:
    one, other = (slice_of(0, name, "3g.40gb", 40_448) for name in "ab")
    world = World().devices(one, other)
    first = world.holds("k", spec=SlotSpec(profile="3g.40gb"))
    second = world.holds("j", owner="bob", spec=SlotSpec(profile="3g.40gb"))
    complains(world, xid(31, one.id))
    assert world.lease(first).cause == Reason.of("program_fault", error="Xid 31")
    assert world.lease(second).cause is None
    assert world.slot(one.id).state is SlotState.LEASED
    assert world.state.gpus[GPU].fault is None


def test_what_means_nothing_changes_nothing() -> None:
    world = World().devices(whole(0))
    before = world.state
    complains(world, xid(63), action="none")
    assert world.state == before


def test_after_its_probation_a_gpu_is_trusted_again_and_a_new_fault_begins_it_anew() -> None:
    world = World().devices(whole(0))
    complains(world, xid(48))
    world.wait(PROBATION_MS - MINUTE)
    complains(world, xid(48))
    world.wait(PROBATION_MS - MINUTE)
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    world.wait(2 * MINUTE)
    assert world.slot("GPU-0").state is SlotState.FREE
    assert world.state.gpus[GPU].fault is None


def test_a_holder_that_stayed_goes_on_after_the_probation() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    complains(world, GpuFault("ecc"))
    world.wait(PROBATION_MS + MINUTE)
    assert world.slot("GPU-0").state is SlotState.LEASED
    assert world.lease(lease_id).cause is None


def test_while_the_driver_asks_for_a_recovery_no_time_counts() -> None:
    """scitix/sichek#121: it is a state, and so tells of what nobody saw happen."""
    world = World().devices(whole(0))
    complains(world, action="gpu_reset")
    world.wait(3 * PROBATION_MS, MINUTE)
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    complains(world, action="none")
    world.wait(PROBATION_MS - MINUTE)
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    world.wait(2 * MINUTE)
    assert world.slot("GPU-0").state is SlotState.FREE


def test_no_probation_ends_while_the_device_is_lost_or_out_of_sight() -> None:
    world = World().devices(whole(0))
    complains(world, xid(48))
    world.do(inventory(whole(0), sick=["GPU-0"]))
    world.wait(PROBATION_MS + MINUTE)
    assert world.state.gpus[GPU].fault is not None
    world.do(inventory(whole(0)))
    assert world.slot("GPU-0").reason == Reason.of("gpu_sick", error="Xid 48", remedy="drain")
    world.do(NodeUnobserved(NODE, Reason.of("probe_unavailable", problem="hanging")))
    world.passes(2 * PROBATION_MS)
    assert world.state.gpus[GPU].fault is not None
    deadline = next_deadline(world.state)
    assert deadline is not None
    assert deadline > world.now


def test_an_admins_word_ends_the_quarantine_at_once() -> None:
    world = World().devices(whole(0))
    complains(world, action="node_reboot")
    world.do(GpuEnabled(Owner("root"), GPU))
    world.look()
    assert world.slot("GPU-0").state is SlotState.FREE


def test_who_waits_is_served_when_the_gpu_is_well_again() -> None:
    world = World().devices(whole(0))
    complains(world, xid(48))
    world.session("k")
    world.asks("k")
    assert world.request("k-lease").state is RequestState.WAITING
    world.wait(PROBATION_MS + MINUTE)
    assert world.request("k-lease").state is RequestState.GRANTED


def test_a_site_says_itself_what_a_fault_means() -> None:
    world = World().devices(whole(0), whole(1))
    rules = (FaultRule("xid-95", Remedy.IGNORE), FaultRule("xid", Remedy.REBOOT, 5 * SECOND))
    world.do(PolicyApplied(faults=rules))
    complains(world, xid(95))
    assert world.slot("GPU-0").state is SlotState.FREE
    complains(world, xid(999))
    fault = world.state.gpus[GPU].fault
    assert fault is not None
    assert (fault.remedy, fault.probation_ms) == (Remedy.REBOOT, 5 * SECOND)


def test_a_fault_of_a_gpu_that_is_not_known_is_nobodys() -> None:
    world = World().devices(whole(1))
    before = world.state
    complains(world, xid(79))
    assert world.state == before


@pytest.mark.parametrize("rule", DEFAULT_FAULTS, ids=lambda rule: rule.id)
def test_every_shipped_row_acts_as_it_says(rule: FaultRule) -> None:
    kind, _, code = rule.id.partition("-")
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    if kind == "recovery":
        complains(world, action="gpu_reset")
    else:
        complains(world, GpuFault(kind, int(code or 12_345)))
    withdraws = rule.remedy in (Remedy.DRAIN, Remedy.RESET, Remedy.REBOOT)
    assert (world.state.gpus[GPU].fault is not None) is withdraws
    assert (world.lease(lease_id).cause is None) is (rule.remedy is Remedy.IGNORE)


def test_a_probation_that_is_over_while_nothing_else_happens_is_noticed_by_time_alone() -> None:
    world = World().devices(whole(0))
    complains(world, xid(48))
    assert next_deadline(world.state) == world.now + PROBATION_MS
    world.wait(PROBATION_MS - SECOND)
    world.look()
    world.now = next_deadline(world.state) or world.now
    world.do(Ticked())
    assert world.state.gpus[GPU].fault is None


def test_an_instance_that_is_another_one_under_its_id_ends_the_lease_of_the_old() -> None:
    one = slice_of(0, "a", "3g.40gb", 40_448)
    world = World().devices(one)
    lease_id = world.holds("k", spec=SlotSpec(profile="3g.40gb"))
    world.do(inventory(replace(one, generation=1)))
    lease = world.lease(lease_id)
    assert (lease.state, lease.cause) == (LeaseState.DRAINING, Reason.of("slot_renewed"))
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.slot(one.id).state is SlotState.FREE
