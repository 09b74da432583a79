"""Kernels that restart, crash and go."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.core import explain
from jupyter_gpubroker.core.model import (
    Activity,
    GiveBackKind,
    JobOutcome,
    JobState,
    LeaseState,
    Reason,
    RequestState,
    SessionId,
    SessionKind,
    SessionState,
    Verdict,
)
from jupyter_gpubroker.errors import Conflict, NotFound
from tests.support.core_world import MINUTE, SECOND, World, whole


def test_opening_the_same_session_again_changes_nothing_and_another_process_is_a_conflict() -> None:
    world = World().devices(whole(0))
    world.session("k", pid=10)
    before = world.state
    world.session("k", pid=10)
    assert world.state == before
    with pytest.raises(Conflict):
        world.session("k", pid=11)


def test_the_server_may_describe_a_session_that_its_process_opened() -> None:
    world = World().devices(whole(0))
    world.session("k", pid=10)
    world.session("k", pid=10, server_id="server", kernel_id="kernel", name="work/notebook.ipynb")
    session = world.state.sessions[world.session("k", pid=10)]
    assert (session.server_id, session.kernel_id) == ("server", "kernel")
    assert session.name == "work/notebook.ipynb"


def test_an_announced_restart_keeps_the_lease_for_the_new_process() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=True)
    world.look()
    world.restarts("k")
    world.empties("GPU-0")
    world.ends("k")  # its process ends, as it must
    world.look()
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    world.session("k2", predecessor="k")
    lease = world.lease(lease_id)
    assert (lease.state, lease.session_id) == (LeaseState.ACTIVE, "k2")
    assert lease.holds[0].epoch == world.slot("GPU-0").epoch == 1
    assert not lease.context_seen
    assert (lease.verdict, lease.verdict_since_ms) == (Verdict.UNKNOWN, world.now)
    assert world.state.sessions[world.request(lease_id).session_id].state is SessionState.ENDED


def test_a_restart_withdraws_a_notice() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.session("next")
    world.asks("next")
    world.wait(16 * MINUTE)
    assert world.lease(lease_id).notice is not None
    world.restarts("k")
    world.session("k2", predecessor="k")
    assert world.lease(lease_id).notice is None


def test_a_restart_keeps_the_place_in_line() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.session("a")
    waiting = world.asks("a")
    world.wait(MINUTE)
    world.session("b")
    world.asks("b")
    world.restarts("a")
    world.session("a2", predecessor="a")
    assert world.request(waiting).session_id == "a2"
    world.ends("k")
    world.look()
    assert world.lease(waiting).session_id == "a2"


def test_a_kernel_in_the_middle_of_a_restart_is_granted_nothing_but_is_not_overtaken() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.session("a")
    world.session("b")
    first, second = world.asks("a"), world.asks("b")
    world.restarts("a")
    world.ends("k")
    world.look()
    assert not {first, second} & set(world.state.leases)
    world.session("a2", predecessor="a")
    assert world.lease(first).session_id == "a2"


def test_what_was_parked_is_gone_with_the_process_but_the_wish_for_a_gpu_is_not() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.releases(lease_id, GiveBackKind.PARKED, done=True, residue_mib=400)
    world.look()
    world.holds("other")
    world.uses("other", "GPU-0", busy=True)
    world.holds("more")
    request_id = world.unparks(lease_id)
    world.restarts("k")
    world.session("k2", predecessor="k")
    assert world.lease(lease_id).state is LeaseState.CLEARED
    request = world.request(request_id)
    assert (request.state, request.session_id) == (RequestState.WAITING, "k2")
    assert (request.lease_id, request.spec.pinned) == (None, ())


def test_a_successor_that_does_not_come_in_time_ends_the_lease() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.restarts("k")
    world.ends("k")
    world.wait(world.state.limits.restart_gap_ms)
    world.look()
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.CLEARED
    assert lease.cause is not None
    assert lease.cause.code == "restart_not_finished"


def test_a_kernel_that_is_not_restarted_in_time_keeps_its_lease() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.restarts("k")
    world.wait(world.state.limits.restart_gap_ms)
    assert world.state.sessions[SessionId("k")].state is SessionState.LIVE
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    world.ends("k")
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_a_grant_waits_for_a_kernel_that_was_not_restarted() -> None:
    world = World().devices(whole(0))
    world.session("k")
    lease_id = world.asks("k")
    world.restarts("k")
    world.wait(world.state.limits.restart_gap_ms)
    assert world.lease(lease_id).state is LeaseState.GRANTED
    world.applies(lease_id)
    assert world.lease(lease_id).state is LeaseState.ACTIVE


def test_a_successor_has_its_time_from_the_end_of_the_process() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.restarts("k")
    gap_ms = world.state.limits.restart_gap_ms
    world.wait(gap_ms - 1)
    world.ends("k")
    world.wait(gap_ms - 1)
    world.ends("k")  # told again: no more time for that
    world.session("k2", predecessor="k")
    assert world.lease(lease_id).session_id == "k2"


def test_a_restarted_kernel_takes_part_in_its_own_give_back() -> None:
    """The order `restarted` is carried out by restarting: the lease follows and comes clear."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.offers("k", GiveBackKind.RESTARTED)
    world.look()
    world.releases(lease_id)
    world.restarts("k")
    world.ends("k")
    world.empties("GPU-0")
    world.session("k2", predecessor="k")
    assert world.lease(lease_id).order is not None
    world.answers(lease_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.lease(lease_id).gave_back is GiveBackKind.RESTARTED


def test_a_restart_before_anybody_looked_leaves_nothing_parked() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.releases(lease_id, GiveBackKind.PARKED, done=True, residue_mib=400)
    world.restarts("k")
    world.session("k2", predecessor="k")
    world.empties("GPU-0")
    world.look()
    lease = world.lease(lease_id)
    assert (lease.state, lease.gave_back) == (LeaseState.CLEARED, GiveBackKind.RESTARTED)


def crashes(world: World, name: str) -> None:
    world.ends(name)
    world.look()


def test_a_crash_ends_the_lease_and_the_successor_has_the_old_place_in_line() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.wait(MINUTE)
    world.session("other")
    waiting = world.asks("other")
    world.uses("k", "GPU-0", busy=False)  # a child is left for a moment
    crashes(world, "k")
    world.session("k2", predecessor="k")
    again = world.asks("k2", "again")
    world.empties("GPU-0")
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.lease(again).state is LeaseState.GRANTED
    assert waiting not in world.state.leases
    assert world.request(again).place_ms == world.request(lease_id).since_ms


def test_the_old_place_is_kept_though_the_lease_was_cleared_at_once() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.wait(MINUTE)
    crashes(world, "k")
    assert world.lease(lease_id).state is LeaseState.CLEARED
    world.session("k2", predecessor="k")
    assert world.request(world.asks("k2", "again")).place_ms == world.request(lease_id).since_ms


def test_the_old_place_is_kept_for_what_was_waited_for_too() -> None:
    world = World().devices(whole(0))
    world.holds("busy")
    world.session("k")
    first = world.asks("k")
    world.wait(MINUTE)
    crashes(world, "k")
    world.session("k2", predecessor="k")
    assert world.request(world.asks("k2", "again")).place_ms == world.request(first).since_ms


@pytest.mark.parametrize("queue", ["batch", "interactive"])
def test_the_old_place_is_not_kept_for_something_else_or_for_ever(queue: str) -> None:
    world = World().devices(whole(0))
    world.holds("busy")
    world.session("k")
    world.asks("k")
    world.wait(MINUTE)
    crashes(world, "k")
    if queue == "interactive":
        world.wait(world.state.limits.restart_gap_ms + SECOND)
    world.session("k2", predecessor="k")
    assert world.request(world.asks("k2", "again", queue=queue)).place_ms is None


def test_a_released_lease_gives_no_place() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.releases(lease_id, done=True)
    world.look()
    world.wait(MINUTE)
    crashes(world, "k")
    world.session("k2", predecessor="k")
    assert world.request(world.asks("k2", "again")).place_ms is None


def test_the_wait_that_is_told_is_that_of_the_request_not_of_its_place() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.wait(MINUTE)
    crashes(world, "k")
    world.session("k2", predecessor="k")
    again = world.request(world.asks("k2", "again"))
    assert again.state is RequestState.GRANTED
    assert explain.request_reason(world.state, again, world.now) == Reason.of(
        "granted", waited_ms=0
    )


def test_giving_back_by_a_restart_gives_no_place() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.offers("k", GiveBackKind.RESTARTED)
    world.uses("k", "GPU-0", busy=False)
    world.wait(MINUTE)
    world.releases(lease_id, GiveBackKind.RESTARTED)
    world.restarts("k")
    world.empties("GPU-0")
    world.ends("k")
    world.session("k2", predecessor="k")
    world.answers(lease_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.request(world.asks("k2", "again")).place_ms is None


def test_a_lease_given_back_after_a_restart_gives_no_place() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.wait(MINUTE)
    world.restarts("k")
    world.session("k2", predecessor="k")
    world.releases(lease_id, done=True)
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.request(world.asks("k2", "again")).place_ms is None


def test_a_successor_of_a_live_process_replaces_it() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.session("k2", predecessor="k")
    world.look()
    assert world.state.sessions[world.request(lease_id).session_id].state is SessionState.ENDED
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_nobody_succeeds_to_anothers_session() -> None:
    world = World().devices(whole(0))
    world.holds("k", "ada")
    with pytest.raises(NotFound):
        world.session("thief", "bob", predecessor="k")


def test_the_end_takes_its_requests_out_of_the_line() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.session("next")
    waiting = world.asks("next")
    world.ends("next", Reason.of("shut_down"))
    request = world.request(waiting)
    assert (request.state, request.reason) == (RequestState.CANCELLED, Reason.of("shut_down"))


def test_an_end_told_twice_happens_once() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.ends("k")
    before = world.state
    world.ends("k")
    assert world.state == before


def test_reports_about_a_session_that_is_over_change_nothing() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.ends("k")
    before = world.state
    world.says("k", Activity.RUNNING)
    world.offers("k", GiveBackKind.EMPTY)
    assert world.state == before


def test_a_runner_that_restarts_hands_its_jobs_over_and_one_that_dies_loses_them() -> None:
    world = World().devices(whole(0))
    runner_id = world.runner()
    running, queued = world.submits(runner_id, "running"), world.submits(runner_id, "queued")
    world.job_starts(running)
    world.uses(running, "GPU-0")
    world.restarts(runner_id)
    world.session("runner-2", kind=SessionKind.RUNNER, predecessor=runner_id)
    assert {world.job(one).session_id for one in (running, queued)} == {"runner-2"}
    world.ends("runner-2")
    assert world.job(queued).outcome is JobOutcome.LOST
    world.look()
    assert world.job(running).state is JobState.RUNNING  # its process still is on the slot
    world.empties("GPU-0")
    world.look()
    assert world.lease(running).state is LeaseState.ACTIVE
    world.job_ends(running, None)
    assert world.job(running).outcome is JobOutcome.LOST
