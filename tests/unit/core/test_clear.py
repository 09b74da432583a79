"""Who is on a slot: free, held back, quarantined, parked beside."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.core.events import NodeUnobserved, ProcessOnSlot, ProcessOwner
from jupyter_gpubroker.core.model import (
    GiveBackKind,
    LeaseState,
    MiB,
    Millis,
    Reason,
    SlotState,
    Verdict,
)
from tests.support.core_world import (
    FLOOR_MIB,
    GONE,
    MINUTE,
    NODE,
    SECOND,
    OnSlot,
    World,
    inventory,
    slice_of,
    whole,
)

FOREIGN = ProcessOnSlot(9, ProcessOwner.FOREIGN, None, 0, MiB(500))
UNMAPPED = ProcessOnSlot(9, ProcessOwner.UNMAPPED)


def test_a_foreign_process_keeps_a_free_slot_from_everybody_until_it_is_gone() -> None:
    """The next free slot is used instead, and the reason is told."""
    world = World().devices(whole(0), whole(1))
    world.shown["GPU-0"] = OnSlot((FOREIGN,), 505)
    world.look()
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    assert world.slot("GPU-0").reason == Reason.of("process_on_slot", pid=9, whose="foreign")
    lease_id = world.holds("k")
    assert world.lease(lease_id).holds[0].slot_id == "GPU-1"
    world.empties("GPU-0")
    world.look()
    assert world.slot("GPU-0").state is SlotState.FREE


def test_memory_that_nobody_owns_keeps_a_slot_from_everybody() -> None:
    """Memory stays on the GPU after a shutdown."""
    world = World().devices(whole(0))
    world.shown["GPU-0"] = OnSlot((), FLOOR_MIB + 5_000)
    world.look()
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    reason = world.slot("GPU-0").reason
    assert reason is not None
    assert reason.code == "memory_in_use"


def test_a_gpu_that_was_full_when_first_seen_is_not_taken_for_empty() -> None:
    world = World()
    world.shown["GPU-0"] = OnSlot((), 20_000)
    world.devices(whole(0))
    assert world.slot("GPU-0").state is SlotState.QUARANTINED


def test_the_floor_is_the_least_seen_on_the_empty_slot() -> None:
    world = World()
    world.shown["GPU-0"] = OnSlot((), 600)
    world.devices(whole(0))
    assert world.slot("GPU-0").baseline_mib == 600
    world.shown["GPU-0"] = OnSlot((), 550)
    world.look()
    world.shown["GPU-0"] = OnSlot((), 590)
    world.look()
    assert world.slot("GPU-0").baseline_mib == 550
    assert world.slot("GPU-0").state is SlotState.FREE


@pytest.mark.parametrize("processes", [None, (UNMAPPED,)])
def test_where_processes_cannot_be_told_memory_decides_and_says_so(
    processes: tuple[ProcessOnSlot, ...] | None,
) -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.shown["GPU-0"] = OnSlot(processes, FLOOR_MIB + 400)
    world.look()
    assert world.lease(lease_id).context_seen
    world.ends("k")
    world.look()
    assert world.lease(lease_id).state is LeaseState.DRAINING
    world.shown["GPU-0"] = OnSlot(processes, FLOOR_MIB + 10)
    reasons = {reason for _, _, reason in world.look().reasons}
    assert world.slot("GPU-0").state is SlotState.FREE
    assert Reason.of("seen_clear", judged_by="memory") in reasons


def test_without_memory_the_list_of_processes_decides() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.ends("k")
    world.shown["GPU-0"] = OnSlot((), None)
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_a_slot_of_which_nothing_can_be_read_is_not_handed_on() -> None:
    world = World().devices(whole(0))
    world.shown["GPU-0"] = OnSlot(None, None)
    world.look()
    world.session("k")
    lease_id = world.asks("k")
    assert lease_id not in world.state.leases
    assert world.slot("GPU-0").state is SlotState.FREE


def test_a_dead_kernels_slot_goes_on_only_when_its_child_has_gone_too() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.look()
    world.session("next")
    waiting = world.asks("next")
    world.ends("k")
    world.look()
    assert world.lease(lease_id).state is LeaseState.DRAINING
    world.empties("GPU-0")
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.lease(waiting).state is LeaseState.GRANTED


def test_who_does_not_leave_in_time_is_alarmed_about_and_the_slot_held_back() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.ends("k")
    world.wait(31 * SECOND)
    assert world.lease(lease_id).state is LeaseState.QUARANTINED
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    cause = world.lease(lease_id).cause
    assert cause == Reason.of("clear_overdue", after_ms=30_000)
    world.empties("GPU-0")
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.slot("GPU-0").state is SlotState.FREE


def test_a_stranger_beside_a_holder_is_told_of_while_it_is_there() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.shown["GPU-0"] = OnSlot((FOREIGN,), 505)
    world.look()
    assert world.slot("GPU-0").state is SlotState.LEASED
    assert world.slot("GPU-0").reason == Reason.of("process_on_slot", pid=9, whose="foreign")
    world.empties("GPU-0")
    world.look()
    assert world.slot("GPU-0").reason is None
    assert world.lease(lease_id).state is LeaseState.ACTIVE


def parked(world: World, name: str = "k", owner: str = "ada") -> str:
    """A lease parked with a residue of 300 MiB on GPU-0."""
    lease_id = world.holds(name, owner)
    world.offers(name, GiveBackKind.PARKED)
    world.uses(name, "GPU-0", busy=False)
    world.look()
    world.releases(lease_id, GiveBackKind.PARKED)
    world.uses(name, "GPU-0", busy=False, memory_mib=300)
    world.answers(lease_id, residue_mib=300)
    world.look()
    assert world.lease(lease_id).state is LeaseState.PARKED
    return lease_id


def test_a_child_of_a_parked_holder_keeps_the_slot_and_so_does_a_residue_that_computes() -> None:
    world = World().devices(whole(0))
    parked(world)
    world.uses("k", "GPU-0", busy=False, memory_mib=300, pid=4242)
    world.look()
    reason = world.slot("GPU-0").reason
    assert (world.slot("GPU-0").state, reason and reason.get("pid")) == (
        SlotState.QUARANTINED,
        4242,
    )
    world.uses("k", "GPU-0", busy=True, memory_mib=300)
    world.look()
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    world.uses("k", "GPU-0", busy=False, memory_mib=300)
    world.look()
    assert world.slot("GPU-0").state is SlotState.FREE


def test_a_parked_holders_residue_does_not_keep_the_slot() -> None:
    world = World().devices(whole(0))
    lease_id = parked(world)
    assert world.slot("GPU-0").state is SlotState.FREE
    assert world.lease(lease_id).residue_mib == 300
    other = world.holds("other")
    assert world.lease(other).holds[0].slot_id == "GPU-0"


def test_beside_a_residue_only_its_own_owner_is_let_in() -> None:
    world = World().devices(whole(0))
    parked(world)
    world.session("stranger", "bob")
    assert world.asks("stranger") not in world.state.leases


def test_a_residue_that_grows_is_use_without_a_lease() -> None:
    world = World().devices(whole(0))
    parked(world)
    world.uses("k", "GPU-0", memory_mib=9_000)
    world.look()
    assert world.slot("GPU-0").state is SlotState.QUARANTINED


def test_a_parked_lease_that_is_dropped_leaves_its_residue_explained_while_its_process_lives() -> (
    None
):
    world = World().devices(whole(0))
    lease_id = parked(world)
    world.releases(lease_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.slot("GPU-0").state is SlotState.FREE
    world.ends("k")
    world.look()
    assert world.slot("GPU-0").state is SlotState.QUARANTINED  # whoever is there now was not meant
    world.empties("GPU-0")
    world.look()
    assert world.slot("GPU-0").state is SlotState.FREE


# --- devices that come and go ------------------------------------------------------------------------------------------


def test_a_hiccup_of_the_reader_costs_nobody_the_lease() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("k")
    world.do(inventory(whole(1)))
    lease = world.lease(lease_id)
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    assert lease.state is LeaseState.ACTIVE
    assert lease.cause == Reason.of("device_lost", state="lost")
    world.do(inventory(whole(0), whole(1)))
    assert world.slot("GPU-0").state is SlotState.LEASED
    assert world.lease(lease_id).cause is None


def test_one_sick_gpu_of_four_leaves_the_others_in_service() -> None:
    world = World().devices(*map(whole, range(4)))
    world.do(inventory(*map(whole, range(4)), sick=["GPU-2"]))
    assert world.slot("GPU-2").state is SlotState.QUARANTINED
    assert {world.slot(f"GPU-{n}").state for n in (0, 1, 3)} == {SlotState.FREE}
    world.do(inventory(*map(whole, range(4))))
    world.look()
    assert world.slot("GPU-2").state is SlotState.FREE


def test_a_lost_gpu_whose_holder_is_gone_must_be_seen_clear_before_it_serves_again() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.do(inventory())
    world.ends("k")
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    world.shown["GPU-0"] = OnSlot((FOREIGN,), 505)
    world.do(inventory(whole(0)))
    world.look()
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    world.empties("GPU-0")
    world.look()
    assert world.slot("GPU-0").state is SlotState.FREE


def test_a_gpu_that_is_partitioned_offers_its_slices_and_no_longer_itself() -> None:
    world = World().devices(whole(0))
    slices = slice_of(0, "a", "3g.40gb", 40_000), slice_of(0, "b", "4g.40gb", 40_000)
    world.shown.clear()
    world.devices(*slices)
    assert world.slot("GPU-0").state is SlotState.QUARANTINED
    assert world.slot("GPU-0").reason == Reason.of("slot_removed")
    assert {world.slot(seen.id).state for seen in slices} == {SlotState.FREE}


def test_nothing_is_granted_on_stale_or_missing_samples() -> None:
    world = World().devices(whole(0))
    world.session("k")
    world.now = Millis(world.now + 11 * SECOND)
    lease_id = world.asks("k")
    assert lease_id not in world.state.leases
    world.do(NodeUnobserved(NODE, Reason.of("probe_unavailable", problem="hanging")))
    assert lease_id not in world.state.leases
    world.look()
    assert world.lease(lease_id).state is LeaseState.GRANTED


def test_what_cannot_be_seen_is_unknown_and_its_notice_withdrawn() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.session("next")
    world.asks("next")
    world.wait(16 * MINUTE)
    assert world.lease(lease_id).notice is not None
    world.do(NodeUnobserved(NODE, Reason.of("probe_unavailable", problem="hanging")))
    assert world.lease(lease_id).verdict is Verdict.UNKNOWN
    assert world.lease(lease_id).notice is None


def test_a_process_of_a_session_without_a_lease_there_is_told_as_such() -> None:
    world = World().devices(whole(0))
    world.session("k")
    world.uses("k", "GPU-0")
    world.look()
    assert world.slot("GPU-0").reason == Reason.of("process_on_slot", pid=10, whose="session")
    world.ends("k", GONE)
