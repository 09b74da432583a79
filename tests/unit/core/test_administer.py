"""What admins do to GPUs, slots and leases, and what they cannot do."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.core import explain
from jupyter_gpubroker.core.events import (
    GpuDisabled,
    GpuEnabled,
    LeaseRevoked,
    ModeSet,
    QuarantineCleared,
)
from jupyter_gpubroker.core.model import (
    GpuId,
    JobState,
    LeaseId,
    LeaseState,
    Mode,
    Owner,
    RequestState,
    SlotId,
    SlotState,
)
from jupyter_gpubroker.errors import Conflict, NotFound
from tests.support.core_world import MINUTE, SECOND, World, whole

ADMIN = Owner("root")
GPU, SLOT = GpuId("GPU-0"), SlotId("GPU-0")
WHY = "a fan is loud"


@pytest.fixture
def world() -> World:
    return World().devices(whole(0))


def disable(world: World) -> None:
    world.do(GpuDisabled(ADMIN, GPU, WHY))


def revoke(world: World, lease_id: LeaseId, notice_ms: int = 5 * MINUTE) -> None:
    world.do(LeaseRevoked(ADMIN, lease_id, WHY, notice_ms))


# --- GPUs ---------------------------------------------------------------------------------------------------------------


def test_a_gpu_that_was_taken_out_is_lent_to_nobody_and_says_who_took_it(world) -> None:
    disable(world)
    world.session("k")
    request = world.asks("k")
    world.wait(MINUTE)
    assert world.request(request).state is RequestState.WAITING
    reason = world.slot(SLOT).reason
    assert reason is not None
    assert "taken out by root: a fan is loud" in explain.sentence(reason)[0]


def test_who_is_on_it_stays_and_nobody_comes_after(world) -> None:
    lease_id = world.holds("k")
    disable(world)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    world.session("next")
    request = world.asks("next")
    world.ends("k")
    world.empties(SLOT)
    world.wait(MINUTE)
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.slot(SLOT).state is SlotState.QUARANTINED
    assert world.request(request).state is RequestState.WAITING


def test_put_back_it_serves_who_waited(world) -> None:
    disable(world)
    world.session("k")
    request = world.asks("k")
    world.do(GpuEnabled(ADMIN, GPU))
    world.look()
    assert world.request(request).state is RequestState.GRANTED


def test_doing_it_twice_is_doing_it_once(world) -> None:
    disable(world)
    assert not world.do(GpuDisabled(ADMIN, GPU, WHY)).changes
    world.do(GpuEnabled(ADMIN, GPU))
    assert not world.do(GpuEnabled(ADMIN, GPU)).changes


def test_a_gpu_that_is_not_there_cannot_be_taken_out(world) -> None:
    with pytest.raises(NotFound):
        world.do(GpuDisabled(ADMIN, GpuId("GPU-9"), WHY))


# --- slots that are held back -------------------------------------------------------------------------------------------


def left_behind(world: World) -> LeaseId:
    """A lease whose holder is gone, but not from the slot."""
    lease_id = world.holds("k")
    world.uses("k", SLOT, busy=False)
    world.look()
    world.ends("k")
    world.wait(MINUTE)
    assert world.lease(lease_id).state is LeaseState.QUARANTINED
    return lease_id


def test_an_admins_word_frees_a_slot_that_did_not_come_clear(world) -> None:
    lease_id = left_behind(world)
    decision = world.do(QuarantineCleared(ADMIN, SLOT, "it is a ghost"))
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.slot(SLOT).state is SlotState.FREE
    assert {reason.code for _, _, reason in decision.reasons} == {"vouched"}


def test_what_is_seen_there_afterwards_counts_again(world) -> None:
    left_behind(world)
    world.do(QuarantineCleared(ADMIN, SLOT, "it is a ghost"))
    world.look()
    assert world.slot(SLOT).state is SlotState.QUARANTINED


def test_nobody_vouches_for_a_gpu_that_was_taken_out(world) -> None:
    disable(world)
    with pytest.raises(Conflict):
        world.do(QuarantineCleared(ADMIN, SLOT, WHY))


# --- leases -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(Mode))
def test_a_revoked_lease_goes_back_after_its_notice_in_every_mode(world, mode) -> None:
    world.do(ModeSet(ADMIN, mode))
    lease_id = world.holds("k")
    revoke(world, lease_id)
    world.wait(4 * MINUTE)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    assert (
        "by an admin's word: a fan"
        in explain.lease_sentence(world.state, world.lease(lease_id), world.now)[0]
    )
    world.wait(2 * MINUTE)
    assert world.lease(lease_id).order is not None


def test_a_revocation_said_again_is_not_put_off_but_may_be_brought_forward(world) -> None:
    lease_id = world.holds("k")
    revoke(world, lease_id)
    first = world.lease(lease_id).notice
    world.wait(MINUTE)
    revoke(world, lease_id)
    assert world.lease(lease_id).notice == first
    revoke(world, lease_id, notice_ms=MINUTE)
    notice = world.lease(lease_id).notice
    assert notice is not None
    assert notice.due_ms == world.now + MINUTE


def test_keep_does_not_help_against_it(world) -> None:
    lease_id = world.holds("k")
    revoke(world, lease_id)
    with pytest.raises(Conflict):
        world.keeps(lease_id)


def test_not_even_an_admin_destroys_what_was_computed(world) -> None:
    """Its process has a context on the GPU and offers nothing that would give it back."""
    lease_id = world.holds("k")
    world.uses("k", SLOT, busy=True)
    world.look()
    revoke(world, lease_id, notice_ms=SECOND)
    world.wait(MINUTE)
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.ACTIVE
    assert lease.cause is not None
    assert lease.cause.code == "holder_cannot_give_back"


def test_a_grant_that_was_not_applied_is_taken_back_at_once(world) -> None:
    world.session("k")
    lease_id = world.asks("k")
    revoke(world, LeaseId(lease_id))
    assert world.lease(lease_id).state is LeaseState.DRAINING


def test_the_job_of_a_revoked_lease_is_stopped(world) -> None:
    job_id = world.submits(world.runner(), "j")
    world.job_starts(job_id)
    (lease_id,) = world.state.leases
    revoke(world, lease_id)
    assert world.job(job_id).state is JobState.STOPPING


def test_a_lease_that_is_not_there_cannot_be_revoked(world) -> None:
    with pytest.raises(NotFound):
        revoke(world, LeaseId("0" * 32))
