"""What a holder is doing: the table of verdicts, and whose clock runs when."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpubroker.core.idle import limit_ms, policy_of, reclaimable_ms, verdict_of
from jupyter_gpubroker.core.model import (
    Activity,
    Millis,
    SessionKind,
    SlotSpec,
    Verdict,
)
from jupyter_gpubroker.core.rules import GENTLE
from tests.support.core_world import MINUTE, SECOND, STEP_MS, OnSlot, World, whole

IDLE, RUNNING, INPUT, DEBUGGER, UNSEEN = (
    Activity.IDLE,
    Activity.RUNNING,
    Activity.INPUT,
    Activity.DEBUGGER,
    Activity.UNKNOWN,
)


@pytest.mark.parametrize(
    ("case", "is_busy", "activity", "context_seen", "verdict"),
    [
        ("1 a five-hour cell that prints and sleeps", False, RUNNING, True, Verdict.HOST_BUSY),
        ("2 a silent computation on the GPU", True, RUNNING, True, Verdict.ACTIVE),
        ("4 a long download in a cell", False, RUNNING, False, Verdict.HOST_BUSY),
        ("7 no utilisation on MIG, shell idle", None, IDLE, True, Verdict.UNKNOWN),
        ("7 no utilisation on MIG, at a prompt", None, INPUT, True, Verdict.UNKNOWN),
        ("8 a missing number is no zero", None, RUNNING, True, Verdict.UNKNOWN),
        ("14 low CPU with a busy GPU", True, UNSEEN, True, Verdict.ACTIVE),
        ("17 a background process uses the GPU", True, IDLE, True, Verdict.ACTIVE),
        ("36 granted, CUDA never initialised", False, IDLE, False, Verdict.NEVER_USED),
        ("40 a cell waits in input()", False, INPUT, True, Verdict.WAITING_USER),
        ("40 a cell stands in the debugger", False, DEBUGGER, True, Verdict.WAITING_USER),
        ("40 at a prompt before any use", False, INPUT, False, Verdict.WAITING_USER),
        ("a debugger stop while a thread trains", True, DEBUGGER, True, Verdict.ACTIVE),
        ("a model is held, its user reads", False, IDLE, True, Verdict.IDLE),
        ("a kernel that nobody watches", False, UNSEEN, True, Verdict.UNKNOWN),
    ],
)
def test_verdict(
    case: str, is_busy: bool | None, activity: Activity, context_seen: bool, verdict: Verdict
) -> None:
    assert verdict_of(is_busy, activity, context_seen=context_seen) is verdict


@pytest.mark.parametrize(
    "verdict", [Verdict.ACTIVE, Verdict.UNKNOWN, Verdict.SERVING, Verdict.SUSPECT]
)
def test_no_limit_ever_runs_against_who_works_or_cannot_be_seen(verdict: Verdict) -> None:
    assert limit_ms(GENTLE, verdict) is None


def test_a_prompt_and_an_idle_shell_have_one_limit_and_a_running_cell_a_longer_one() -> None:
    assert (
        limit_ms(GENTLE, Verdict.IDLE) == limit_ms(GENTLE, Verdict.WAITING_USER) == GENTLE.idle_ms
    )
    assert limit_ms(GENTLE, Verdict.HOST_BUSY) == GENTLE.host_busy_ms > GENTLE.idle_ms
    assert limit_ms(GENTLE, Verdict.NEVER_USED) == GENTLE.never_used_ms < GENTLE.idle_ms


def used_by(world: World, lease_id: str, *, busy: bool | None = False) -> None:
    """The holder has a context on its slot."""
    lease = world.lease(lease_id)
    world.uses(lease.session_id, lease.holds[0].slot_id, busy=busy)


def spell_ms(world: World, lease_id: str) -> int:
    return world.now - world.lease(lease_id).verdict_since_ms


def test_the_clock_starts_at_the_grant_whatever_was_before() -> None:
    """Case 3, 101: an old kernel that gets a lease is not idle since yesterday."""
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
    """Case 13: the first samples show no process of the holder; a new clock runs, and a process ends it."""
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
    """Case 24: a hundred reconnects, no execution."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    since_ms = world.lease(lease_id).verdict_since_ms
    for number in range(100):
        world.wait(10 * SECOND)
        world.says("k", IDLE, front_ends=number % 2)
    assert world.lease(lease_id).verdict_since_ms == since_ms


def test_a_running_cell_is_not_idle_however_long_it_is_quiet() -> None:
    """Case 1, 2: closing the browser changes nothing."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.says("k", RUNNING, front_ends=0)
    world.wait(90 * MINUTE)
    lease = world.lease(lease_id)
    assert lease.verdict is Verdict.HOST_BUSY
    assert reclaimable_ms(world.state, lease) == lease.verdict_since_ms + GENTLE.host_busy_ms


def test_nothing_known_resets_the_clock() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    used_by(world, lease_id)
    world.wait(20 * MINUTE)
    used_by(world, lease_id, busy=None)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.UNKNOWN
    assert reclaimable_ms(world.state, world.lease(lease_id)) is None
    used_by(world, lease_id)
    world.look()
    assert spell_ms(world, lease_id) == 0


def test_a_slice_without_counters_is_idle_only_when_nobody_is_on_it() -> None:
    """Case 7: on MIG the process list alone can tell that nothing runs."""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.shown["GPU-0"] = OnSlot(processes=(), busy=None)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.NEVER_USED
    used_by(world, lease_id, busy=None)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("step_ms", [200, 1_000, 3_700, 9_999])
def test_windows_are_time_and_not_samples(step_ms: int) -> None:
    """Case 18: jitter in the ticks does not move the limit."""
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
    """Case 18: a gap in the samples pauses the clock; it neither runs on nor starts anew."""
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
    world.look()
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
