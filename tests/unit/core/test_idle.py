"""Whose clock runs when, and from when on a lease may be taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_gpubroker.core.claim import is_takeable
from jupyter_gpubroker.core.events import NodeUnobserved, PolicyApplied
from jupyter_gpubroker.core.idle import limit_ms, policy_of, reclaimable_ms
from jupyter_gpubroker.core.model import (
    Activity,
    Millis,
    Reason,
    SessionKind,
    SlotSpec,
    Verdict,
)
from jupyter_gpubroker.core.rules import GENTLE
from tests.support.core_world import MINUTE, NODE, SECOND, STEP_MS, OnSlot, World, whole

IDLE, RUNNING, INPUT, DEBUGGER = (
    Activity.IDLE,
    Activity.RUNNING,
    Activity.INPUT,
    Activity.DEBUGGER,
)


@pytest.mark.parametrize("verdict", [Verdict.ACTIVE, Verdict.UNKNOWN, Verdict.SUSPECT])
def test_no_limit_ever_runs_against_who_works_or_cannot_be_seen(verdict: Verdict) -> None:
    assert limit_ms(GENTLE, verdict) is None


def test_a_prompt_and_an_idle_shell_have_one_limit_and_a_running_cell_a_longer_one() -> None:
    assert (
        limit_ms(GENTLE, Verdict.IDLE) == limit_ms(GENTLE, Verdict.WAITING_USER) == GENTLE.idle_ms
    )
    assert limit_ms(GENTLE, Verdict.HOST_BUSY) == GENTLE.host_busy_ms > GENTLE.idle_ms
    assert limit_ms(GENTLE, Verdict.NEVER_USED) == GENTLE.never_used_ms < GENTLE.idle_ms


def used_by(world: World, lease_id: str, *, busy: bool | None = False, **more: Any) -> None:
    """The holder has a context on its slot."""
    lease = world.lease(lease_id)
    world.uses(lease.session_id, lease.holds[0].slot_id, busy=busy, **more)


def spell_ms(world: World, lease_id: str) -> int:
    return world.now - world.lease(lease_id).verdict_since_ms


def test_the_clock_starts_at_the_grant_whatever_was_before() -> None:
    """An old kernel that gets a lease is not idle since yesterday."""
    world = World().devices(whole(0))
    world.session("k")
    world.says("k", IDLE)
    world.wait(60 * MINUTE)
    lease_id = world.asks("k")
    world.applies(lease_id)
    world.wait(2 * SECOND)
    assert world.lease(lease_id).verdict is Verdict.NEVER_USED
    assert spell_ms(world, lease_id) <= 2 * SECOND


def test_samples_without_an_owner_just_after_the_grant_are_not_idleness_of_old() -> None:
    """The first samples show no process of the holder; a new clock runs, and a process ends it."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.wait(10 * SECOND)
    used_by(world, lease_id, busy=True)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.ACTIVE


def test_the_quiet_spell_begins_when_the_work_ends() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id, busy=True)
    world.wait(10 * MINUTE)
    assert world.lease(lease_id).verdict is Verdict.ACTIVE
    used_by(world, lease_id)
    world.wait(5 * MINUTE)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    assert spell_ms(world, lease_id) == 5 * MINUTE - STEP_MS


def test_a_prompt_that_becomes_a_breakpoint_keeps_its_clock() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.says("k", RUNNING)
    world.says("k", INPUT)
    world.wait(5 * MINUTE)
    world.says("k", DEBUGGER)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.WAITING_USER
    assert spell_ms(world, lease_id) == 5 * MINUTE


def test_a_short_cell_every_few_minutes_is_a_user_who_works() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    for _ in range(12):
        world.wait(5 * MINUTE)
        world.says("k", RUNNING)
        world.says("k", IDLE)
    world.look()
    assert spell_ms(world, lease_id) < SECOND


def test_front_ends_that_come_and_go_do_not_move_the_clock() -> None:
    """A hundred reconnects, no execution."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    since_ms = world.lease(lease_id).verdict_since_ms
    for number in range(100):
        world.wait(10 * SECOND)
        world.says("k", IDLE, front_ends=number % 2)
    assert world.lease(lease_id).verdict_since_ms == since_ms


def test_a_running_cell_is_not_idle_however_long_it_is_quiet() -> None:
    """Closing the browser changes nothing."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.says("k", RUNNING, front_ends=0)
    world.wait(90 * MINUTE)
    lease = world.lease(lease_id)
    assert lease.verdict is Verdict.HOST_BUSY
    assert reclaimable_ms(world.state, lease) == lease.verdict_since_ms + GENTLE.host_busy_ms


def test_nothing_known_for_long_resets_the_clock() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(20 * MINUTE)
    used_by(world, lease_id, busy=None)
    world.wait(2 * MINUTE)
    assert world.lease(lease_id).verdict is Verdict.UNKNOWN
    assert reclaimable_ms(world.state, world.lease(lease_id)) is None
    used_by(world, lease_id)
    world.look()
    assert spell_ms(world, lease_id) == 0


def test_a_missed_sample_stops_the_clock_and_nothing_is_taken_meanwhile() -> None:
    """A source that fails now and then keeps nobody for ever."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(GENTLE.idle_ms + MINUTE)
    spell = spell_ms(world, lease_id)
    used_by(world, lease_id, busy=None)
    world.wait(3 * STEP_MS)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    assert not is_takeable(world.state, world.lease(lease_id), world.now)
    used_by(world, lease_id)
    world.wait(STEP_MS)
    assert spell_ms(world, lease_id) == spell + STEP_MS
    assert is_takeable(world.state, world.lease(lease_id), world.now)


def test_a_node_out_of_sight_for_a_moment_is_no_new_start() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(20 * MINUTE)
    spell = spell_ms(world, lease_id)
    world.do(NodeUnobserved(NODE, Reason.of("probe_unavailable", problem="hanging")))
    assert world.lease(lease_id).verdict is Verdict.UNKNOWN
    world.now = Millis(world.now + 20 * SECOND)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.IDLE
    assert spell_ms(world, lease_id) == spell


def test_a_pause_between_two_bursts_is_no_rest_and_a_rest_counts_from_its_beginning() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id, busy=True)
    world.look()
    used_by(world, lease_id)
    world.wait(9 * SECOND, SECOND)
    assert world.lease(lease_id).verdict is Verdict.ACTIVE
    world.wait(2 * SECOND, SECOND)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    assert spell_ms(world, lease_id) == 10 * SECOND


def test_a_short_idle_limit_is_not_held_up_by_the_pause_that_is_no_rest() -> None:
    world = World().devices(whole(0))
    world.do(PolicyApplied((replace(GENTLE, idle_ms=2 * SECOND),)))
    lease_id = world.holds("k")
    used_by(world, lease_id, busy=True)
    world.look()
    used_by(world, lease_id)
    world.wait(3 * SECOND, SECOND)
    assert is_takeable(world.state, world.lease(lease_id), world.now)


def test_work_on_the_host_without_a_cell_counts_once_it_lasts() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(10 * MINUTE)
    used_by(world, lease_id, host_busy=True)
    world.wait(9 * SECOND, SECOND)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    world.wait(2 * SECOND, SECOND)
    assert world.lease(lease_id).verdict is Verdict.HOST_BUSY
    used_by(world, lease_id, host_busy=False)
    world.wait(3 * MINUTE, SECOND)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    assert spell_ms(world, lease_id) == 3 * MINUTE - SECOND


@pytest.mark.parametrize("pattern", [(None,), (None,) * 9 + (True,)], ids=["never", "seldom"])
def test_work_on_the_host_ends_though_its_rest_is_never_seen(pattern: tuple[bool | None]) -> None:
    """Bytes read and written that may not be looked at: then the host works or is unknown, and never at rest."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id, host_busy=True)
    world.wait(20 * SECOND, SECOND)
    used_by(world, lease_id, host_busy=None)
    world.wait(30 * SECOND, SECOND)
    assert world.lease(lease_id).verdict is Verdict.HOST_BUSY
    for _ in range(10 * MINUTE // SECOND // len(pattern)):
        for host_busy in pattern:
            used_by(world, lease_id, host_busy=host_busy)
            world.wait(SECOND, SECOND)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    assert spell_ms(world, lease_id) < 9 * MINUTE


def test_a_moment_of_work_on_the_host_does_not_move_the_idle_clock() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.look()
    since_ms = world.lease(lease_id).verdict_since_ms
    for _ in range(30):
        used_by(world, lease_id, host_busy=True)
        world.wait(2 * SECOND, SECOND)
        used_by(world, lease_id, host_busy=False)
        world.wait(58 * SECOND, SECOND)
    assert world.lease(lease_id).verdict_since_ms == since_ms


def test_a_grace_longer_than_the_limits_holds_off_the_taking() -> None:
    world = World().devices(whole(0))
    world.do(PolicyApplied((replace(GENTLE, grace_ms=40 * MINUTE),)))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(39 * MINUTE)
    assert reclaimable_ms(world.state, world.lease(lease_id)) == (
        world.lease(lease_id).since_ms + 40 * MINUTE
    )
    assert not is_takeable(world.state, world.lease(lease_id), world.now)


def test_a_slice_without_counters_is_idle_only_when_nobody_is_on_it() -> None:
    """On MIG the process list alone can tell that nothing runs."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.shown["GPU-0"] = OnSlot(processes=(), busy=None)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.NEVER_USED
    used_by(world, lease_id, busy=None)
    world.wait(2 * MINUTE)
    assert world.lease(lease_id).verdict is Verdict.UNKNOWN


def test_an_empty_list_beside_memory_in_use_is_no_proof_that_nobody_is_there() -> None:
    """NVIDIA/open-gpu-kernel-modules#614: the list may be empty inside a container."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.shown["GPU-0"] = OnSlot(processes=(), busy=None, memory_mib=30_000)
    world.wait(2 * MINUTE)
    assert world.lease(lease_id).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("step_ms", [200, 1_000, 3_700, 9_999])
def test_windows_are_time_and_not_samples(step_ms: int) -> None:
    """Jitter in the ticks does not move the limit."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.look()
    since_ms = world.lease(lease_id).verdict_since_ms
    for number in range(200):
        world.now = Millis(world.now + step_ms - number % 7)
        world.look()
    assert world.lease(lease_id).verdict_since_ms == since_ms


def test_time_that_nobody_watched_does_not_count() -> None:
    """A gap in the samples pauses the clock; it neither runs on nor starts anew."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(10 * MINUTE)
    spell = spell_ms(world, lease_id)
    world.now = Millis(world.now + 60 * MINUTE)
    world.look()
    assert spell_ms(world, lease_id) == spell


def test_a_restarted_broker_knows_nothing_until_it_looked_again() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(20 * MINUTE)
    world.forget_telemetry()
    world.look()
    assert spell_ms(world, lease_id) == 0


def test_a_steady_sample_changes_nothing_that_is_kept() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(10 * SECOND)
    for _ in range(5):
        world.now = Millis(world.now + SECOND)
        assert world.look().reasons == ()


@pytest.mark.parametrize(
    ("kind", "queue", "fields"),
    [
        (SessionKind.COMMAND, "interactive", {}),
        (SessionKind.KERNEL, "batch", {}),
        (SessionKind.KERNEL, "interactive", {"headless": True}),
    ],
)
def test_commands_batch_queues_and_headless_runs_are_never_taken_for_idleness(
    kind: SessionKind, queue: str, fields: dict[str, Any]
) -> None:
    world = World().devices(whole(0))
    world.session("s", kind=kind, **fields)
    world.says("s", IDLE)
    lease_id = world.asks("s", queue=queue)
    world.applies(lease_id)
    world.look()
    assert policy_of(world.state, world.lease(lease_id)) is None
    assert reclaimable_ms(world.state, world.lease(lease_id)) is None


def test_a_job_is_shown_as_working_or_idle_by_the_device_alone() -> None:
    world = World().devices(whole(0))
    job_id = world.submits(world.runner(), "j")
    world.job_starts(job_id)
    world.uses(job_id, "GPU-0", busy=True)
    world.look()
    assert world.lease("j").verdict is Verdict.ACTIVE
    world.uses(job_id, "GPU-0", busy=False)
    world.wait(MINUTE)
    assert world.lease("j").verdict is Verdict.IDLE
    assert policy_of(world.state, world.lease("j")) is None


def test_work_gives_the_keeps_back() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.keeps(lease_id)
    assert world.lease(lease_id).keeps_used == 1
    used_by(world, lease_id, busy=True)
    world.look()
    assert world.lease(lease_id).keeps_used == 0


def test_one_busy_slot_of_several_makes_the_lease_active() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("k", spec=SlotSpec(2))
    world.uses("k", "GPU-1", busy=True)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.ACTIVE


def test_a_look_at_some_of_its_slots_judges_no_lease() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("k", spec=SlotSpec(2))
    before = world.lease(lease_id)
    world.uses("k", "GPU-1", busy=True)
    world.look("GPU-1")
    assert world.lease(lease_id) == before
