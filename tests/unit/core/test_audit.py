"""Use of a slot without a lease: found, told, and stopped where the policy says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from jupyter_gpubroker.core.audit import warnings
from jupyter_gpubroker.core.decision import Decision
from jupyter_gpubroker.core.effects import StopProcess, TellOfUse
from jupyter_gpubroker.core.events import (
    ProcessOnSlot,
    ProcessOwner,
    SlotObservation,
    SlotsObserved,
)
from jupyter_gpubroker.core.model import (
    GiveBackKind,
    LeaseState,
    MiB,
    Millis,
    Mode,
    Modes,
    SessionId,
    SlotId,
    SlotState,
    UnleasedUse,
)
from tests.support.core_world import FLOOR_MIB, NODE, SECOND, World, whole

SLOT = SlotId("GPU-0")
OTHER = SlotId("GPU-1")
STRANGER = ProcessOnSlot(900, ProcessOwner.FOREIGN, uid=1001, start_ticks=7)


@pytest.fixture
def world() -> World:
    return World().devices(whole(0), whole(1))


def sees(
    world: World,
    *processes: ProcessOnSlot,
    slot_id: SlotId = SLOT,
    left_behind: Sequence[ProcessOnSlot] | None = (),
) -> Decision:
    """One look at one slot, a second later."""
    world.now = Millis(world.now + SECOND)
    memory = MiB(FLOOR_MIB + 400 * len(processes))
    left = None if left_behind is None else tuple(left_behind)
    look = SlotObservation(slot_id, False, None, memory, processes, left_behind=left)
    leaving = frozenset(lease.id for lease in world.state.leases.values() if lease.is_leaving)
    return world.do(SlotsObserved(NODE, (look,), leaving))


def of_kernel(
    world: World, name: str, pid: int | None = None, computes: bool | None = None
) -> ProcessOnSlot:
    own = world.state.sessions[SessionId(name)].pid
    owner = ProcessOwner.SESSION
    return ProcessOnSlot(pid or own, owner, name, 1000, start_ticks=1, computes=computes)


def uses(world: World) -> tuple[UnleasedUse, ...]:
    return world.state.telemetry[NODE].uses


def stops(decision: Decision) -> list[StopProcess]:
    return [effect for effect in decision.effects if isinstance(effect, StopProcess)]


def test_a_process_of_nobody_is_told_at_the_first_look_and_once(world):
    first, second = sees(world, STRANGER), sees(world, STRANGER)
    (use,) = uses(world)
    assert (use.kind, use.pid, use.uid, use.holder_id) == ("unleased", 900, 1001, None)
    assert use.since_ms == world.now - SECOND
    assert first.effects == (TellOfUse(use),)
    assert second.effects == ()
    assert world.slot(SLOT).state is SlotState.QUARANTINED


def test_hami_1112_a_process_of_the_users_own_on_another_gpu_is_a_use_whatever_its_environment(
    world,
):
    """Project-HAMi/HAMi#1112: a login shell does not inherit the limit and sees the full GPU."""
    world.holds("kernel")
    sees(world, of_kernel(world, "kernel"), slot_id=OTHER)
    (use,) = uses(world)
    assert (use.slot_id, use.holder_id) == (OTHER, "kernel")
    (warning,) = warnings(world.state, world.state.sessions[SessionId("kernel")])
    assert (warning.code, warning.get("pid")) == ("own_use_unleased", use.pid)


def test_where_the_broker_only_observes_nothing_is_said_to_the_user(world):
    world.holds("kernel")
    world.state = replace(world.state, modes=Modes(mode=Mode.OBSERVE))
    sees(world, of_kernel(world, "kernel"), slot_id=OTHER)
    assert len(uses(world)) == 1
    assert warnings(world.state, world.state.sessions[SessionId("kernel")]) == ()


def test_a_holder_and_its_children_on_their_slot_are_no_use_without_lease(world):
    world.holds("kernel")
    sees(world, of_kernel(world, "kernel"), of_kernel(world, "kernel", pid=77))
    assert uses(world) == ()
    assert warnings(world.state, world.state.sessions[SessionId("kernel")]) == ()


def test_a_use_that_ends_is_forgotten_and_looks_at_other_slots_leave_it(world):
    sees(world, STRANGER)
    sees(world, slot_id=OTHER)
    assert [use.pid for use in uses(world)] == [900]
    sees(world)
    assert uses(world) == ()


def test_a_process_that_cannot_be_told_is_no_use(world):
    sees(world, ProcessOnSlot(900, ProcessOwner.UNMAPPED))
    assert uses(world) == ()


def test_a_display_server_keeps_the_slot_from_being_handed_on_and_is_no_use(world):
    sees(world, replace(STRANGER, is_exempt=True))
    assert uses(world) == ()
    assert world.slot(SLOT).state is SlotState.QUARANTINED


@pytest.fixture
def parked(world: World) -> World:
    """A parked kernel with a quiet context on its slot."""
    lease_id = world.holds("kernel")
    world.uses("kernel", SLOT)
    world.look()
    world.offers("kernel", GiveBackKind.PARKED)
    world.releases(lease_id, GiveBackKind.PARKED)
    world.uses("kernel", SLOT, busy=False)
    world.answers(lease_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.PARKED
    return world


def test_a_parked_residue_that_computes_is_a_use(parked):
    sees(parked, of_kernel(parked, "kernel", computes=False))
    assert uses(parked) == ()
    sees(parked, of_kernel(parked, "kernel", computes=True))
    (use,) = uses(parked)
    assert use.kind == "parked"
    (warning,) = warnings(parked.state, parked.state.sessions[SessionId("kernel")])
    assert warning.code == "own_use_parked"


def test_a_child_of_a_parked_kernel_is_a_use_even_when_quiet(parked):
    sees(parked, of_kernel(parked, "kernel", pid=77, computes=False))
    (use,) = uses(parked)
    assert use.kind == "unleased"


# --- stopping ---------------------------------------------------------------------------------------------------------------


def test_nobody_is_stopped_without_a_policy_that_says_so(world):
    assert not any(stops(sees(world, STRANGER)) for _ in range(100))


def test_a_policy_stops_with_term_and_then_by_force(world):
    world.limits(unleased_stop_ms=2 * SECOND, unleased_kill_ms=2 * SECOND)
    term, kill = StopProcess(900, 7, force=False), StopProcess(900, 7, force=True)
    found = [stops(sees(world, STRANGER)) for _ in range(6)]
    assert found == [[], [], [term], [term], [kill], [kill]]


def test_a_process_that_comes_back_has_its_time_anew(world):
    world.limits(unleased_stop_ms=2 * SECOND)
    sees(world, STRANGER)
    sees(world)
    assert not any(stops(sees(world, STRANGER)) for _ in range(2))


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_where_rules_are_not_enforced_nobody_is_stopped(world, mode):
    world.limits(unleased_stop_ms=1)
    world.state = replace(world.state, modes=Modes(mode=mode))
    assert not any(stops(sees(world, STRANGER)) for _ in range(5))


@pytest.mark.parametrize(
    "process",
    [replace(STRANGER, is_exempt=True), replace(STRANGER, start_ticks=None)],
    ids=["exempt", "known by its number alone"],
)
def test_some_are_never_stopped(world, process):
    world.limits(unleased_stop_ms=1)
    assert not any(stops(sees(world, process)) for _ in range(5))


def test_a_program_of_the_holders_user_beside_the_holder_is_told_and_not_stopped(world):
    world.limits(unleased_stop_ms=1)
    world.holds("kernel")
    login_shell = replace(STRANGER, uid=1000)
    found = [sees(world, of_kernel(world, "kernel"), login_shell) for _ in range(5)]
    assert [use.pid for use in uses(world)] == [login_shell.pid]
    assert not any(map(stops, found))
    assert any(stops(sees(world, of_kernel(world, "kernel"), STRANGER)) for _ in range(3))


# --- who is left behind -----------------------------------------------------------------------------------------------------


def test_a_slot_is_not_handed_on_while_a_child_of_the_killed_kernel_lives(world):
    lease_id = world.holds("kernel")
    child = of_kernel(world, "kernel", pid=77)
    world.ends("kernel")
    sees(world, left_behind=[child])
    assert world.lease(lease_id).state is LeaseState.DRAINING
    reason = world.slot(SLOT).reason
    assert reason is not None
    assert (reason.code, reason.get("pid"), reason.get("count")) == ("left_behind", 77, 1)
    sees(world)
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.slot(SLOT).state is SlotState.FREE


def test_a_child_that_stays_holds_the_slot_back_and_says_who_it_is(world):
    lease_id = world.holds("kernel")
    child = of_kernel(world, "kernel", pid=77)
    world.ends("kernel")
    sees(world, left_behind=[child])
    world.passes(world.state.limits.clear_grace_ms)
    sees(world, left_behind=[child])
    assert world.lease(lease_id).state is LeaseState.QUARANTINED
    reason = world.slot(SLOT).reason
    assert reason is not None
    assert reason.code == "left_behind"
    assert [(use.kind, use.pid) for use in uses(world)] == [("left", 77)]
    sees(world)
    assert world.slot(SLOT).state is SlotState.FREE


def test_who_is_left_behind_is_stopped_only_once_on_the_device(world):
    world.limits(unleased_stop_ms=1)
    world.holds("kernel")
    child = of_kernel(world, "kernel", pid=77)
    world.ends("kernel")
    sees(world, left_behind=[child])
    world.passes(world.state.limits.clear_grace_ms)
    assert not any(stops(sees(world, left_behind=[child])) for _ in range(5))
    assert [(use.kind, use.pid) for use in uses(world)] == [("left", 77)]
    assert stops(sees(world, child, left_behind=[child]))


def test_where_nobody_could_look_for_children_the_slot_is_not_clear(world):
    lease_id = world.holds("kernel")
    world.ends("kernel")
    sees(world, left_behind=None)
    assert world.lease(lease_id).state is LeaseState.DRAINING


def test_a_process_that_stays_after_its_holder_should_be_gone_is_a_use(world):
    world.holds("kernel")
    child = of_kernel(world, "kernel", pid=77)
    world.ends("kernel")
    sees(world, child)
    assert uses(world) == ()
    world.passes(world.state.limits.clear_grace_ms)
    sees(world, child)
    (use,) = uses(world)
    assert use.kind == "left"
