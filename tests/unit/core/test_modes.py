"""How far the broker goes: what observing and advising leave undone, and for whom they hold."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.core import explain, modes, queue
from jupyter_gpubroker.core.decision import Decision
from jupyter_gpubroker.core.events import ModeSet
from jupyter_gpubroker.core.model import GpuId, Lease, LeaseState, Mode, Owner, Reason, SessionId
from jupyter_gpubroker.errors import NotFound
from tests.support.core_world import MINUTE, World, whole

ADMIN = Owner("root")
IDLE_MS, NOTICE_MS = (
    15 * MINUTE,
    5 * MINUTE,
)  # of a lease that was never used, by the policy `gentle`


def set_mode(
    world: World, mode: Mode | None, gpu: str | None = None, group: str | None = None
) -> Decision:
    gpu_id = None if gpu is None else GpuId(gpu)
    return world.do(ModeSet(ADMIN, mode, gpu_id, group))


def world_in(mode: Mode, gpus: int = 1) -> World:
    world = World().devices(*(whole(number) for number in range(gpus)))
    set_mode(world, mode)
    return world


def wanted(world: World) -> Lease:
    """A lease that is never used, for long enough that it would be taken."""
    lease_id = world.holds("k")
    world.session("next")
    world.asks("next")
    world.wait(IDLE_MS + NOTICE_MS + MINUTE)
    return world.lease(lease_id)


def test_in_observe_mode_nobody_is_noticed_but_what_would_have_happened_is_written_down_once():
    world = world_in(Mode.OBSERVE)
    lease = wanted(world)
    assert (lease.notices, lease.state) == (0, LeaseState.ACTIVE)
    assert lease.cause is not None
    assert lease.cause.code == "only_observed"
    world.wait(60 * MINUTE)
    assert world.lease(lease.id).cause == lease.cause


def test_in_observe_mode_work_begins_a_new_spell():
    world = world_in(Mode.OBSERVE)
    lease = wanted(world)
    world.uses("k", "GPU-0", busy=True)
    world.look()
    assert world.lease(lease.id).cause is None


def test_in_observe_mode_a_time_that_is_over_is_not_announced():
    world = world_in(Mode.OBSERVE)
    lease_id = world.holds("k", duration_ms=60 * MINUTE)
    world.wait(61 * MINUTE)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    assert world.lease(lease_id).notices == 0


def test_in_advise_mode_the_notice_is_all():
    world = world_in(Mode.ADVISE)
    lease_id = world.holds("k")
    world.session("next")
    world.asks("next")
    world.wait(IDLE_MS + MINUTE)
    assert world.lease(lease_id).notice is not None
    world.wait(NOTICE_MS)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    assert world.lease(lease_id).cause == Reason.of("only_advised")


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_nobody_is_told_a_time_by_which_nothing_will_come(mode):
    world = world_in(mode)
    world.holds("k", duration_ms=60 * MINUTE)
    world.session("next")
    request = world.request(world.asks("next"))
    assert queue.expected_ms(world.state, request, world.now) is None


def test_a_notice_is_withdrawn_when_the_broker_turns_to_observing():
    world = world_in(Mode.ENFORCE)
    lease_id = world.holds("k")
    world.session("next")
    world.asks("next")
    world.wait(IDLE_MS + MINUTE)
    assert world.lease(lease_id).notice is not None
    set_mode(world, Mode.OBSERVE)
    assert world.lease(lease_id).notice is None


def test_what_was_only_observed_is_noticed_when_the_broker_turns_to_enforcing():
    world = world_in(Mode.OBSERVE)
    lease = wanted(world)
    set_mode(world, Mode.ENFORCE)
    assert world.lease(lease.id).notice is not None


def test_one_gpu_may_be_enforced_while_the_others_are_observed():
    world = world_in(Mode.OBSERVE, gpus=2)
    set_mode(world, Mode.ENFORCE, gpu="GPU-1")
    first, second = world.lease(world.holds("a")), world.lease(world.holds("b"))
    by_gpu = {one.holds[0].slot_id: modes.of_lease(world.state, one) for one in (first, second)}
    assert by_gpu == {"GPU-0": Mode.OBSERVE, "GPU-1": Mode.ENFORCE}
    world.session("next")
    world.asks("next")
    world.wait(IDLE_MS + MINUTE)
    noticed = {
        world.lease(one.id).holds[0].slot_id
        for one in (first, second)
        if world.lease(one.id).notice is not None
    }
    assert noticed == {"GPU-1"}


def test_a_group_may_have_a_mode_of_its_own_and_the_mildest_of_several_counts():
    world = world_in(Mode.OBSERVE)
    set_mode(world, Mode.ENFORCE, group="students")
    set_mode(world, Mode.ADVISE, group="staff")
    assert modes.of_groups(world.state, ("students",)) is Mode.ENFORCE
    assert modes.of_groups(world.state, ("students", "staff")) is Mode.ADVISE
    assert modes.of_groups(world.state, ("guests",)) is Mode.OBSERVE
    set_mode(world, None, group="students")
    assert modes.of_groups(world.state, ("students",)) is Mode.OBSERVE


def test_a_mode_for_a_gpu_that_is_not_there_is_refused():
    world = world_in(Mode.OBSERVE)
    with pytest.raises(NotFound):
        set_mode(world, Mode.ENFORCE, gpu="GPU-9")


def test_who_changed_the_mode_is_in_the_reason():
    world = world_in(Mode.ENFORCE)
    ((table, entity_id, reason),) = set_mode(world, Mode.ADVISE).reasons
    assert (table, entity_id) == ("modes", "modes")
    assert explain.sentence(reason)[0] == "The mode was set to advise by root."


def test_whoever_left_a_group_is_held_to_that_when_his_session_is_opened_again():
    world = World().devices(whole(0))
    world.session("k", pid=10, server_id="server", groups=("trial",))
    world.session("k", pid=10, server_id="server", groups=("staff",))
    world.session("k", pid=10, groups=("staff",))
    assert world.state.sessions[SessionId("k")].groups == ("staff",)
