"""What people reported of idleness judged wrongly, elsewhere: each report is a row or a test here, named by its source.

The first table holds what a holder does, for how long, and what must come of it while somebody else waits for its GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpubroker.core.events import PolicyApplied
from jupyter_gpubroker.core.explain import evidence_reason, lease_sentence, sentence
from jupyter_gpubroker.core.idle import evidence_now, policy_of, reclaimable_ms
from jupyter_gpubroker.core.model import (
    Activity,
    GiveBackKind,
    LeaseState,
    MiB,
    Millis,
    SessionKind,
    SlotSpec,
    Verdict,
)
from jupyter_gpubroker.core.rules import GENTLE, Policy, Queue, Tier
from jupyter_gpubroker.errors import Refused
from tests.support.core_world import MINUTE, SECOND, World, slice_of, whole

HOUR = 60 * MINUTE
IDLE, RUNNING, INPUT, DEBUGGER = (
    Activity.IDLE,
    Activity.RUNNING,
    Activity.INPUT,
    Activity.DEBUGGER,
)
SLICE = slice_of(0, "a", "3g.40gb", 40_448)


@dataclass(frozen=True)
class Case:
    """`shown` is what the devices and the host show of the holder; `taken` whether the GPU goes within `for_ms`."""

    source: str
    activity: Activity
    verdict: Verdict
    for_ms: int
    taken: bool
    shown: dict[str, Any] = field(default_factory=dict)
    on_slice: bool = False
    front_ends: int = 1


CASES = {
    "a cell that prints and sleeps for five hours, browser closed": Case(
        "jupyterhub/jupyterhub#1498", RUNNING, Verdict.HOST_BUSY, 2 * HOUR - MINUTE, taken=False, front_ends=0,
    ),
    "a silent computation on the GPU, three times the idle limit": Case(
        "jupyter/notebook#3932", RUNNING, Verdict.ACTIVE, 3 * GENTLE.idle_ms, taken=False, shown={"busy": True},
    ),
    "a silent computation on the host": Case(
        "jupyter/notebook#3932", RUNNING, Verdict.HOST_BUSY, 3 * GENTLE.idle_ms, taken=False, shown={"host_busy": True},
    ),
    "a long download in a cell, its user away": Case(
        "dandi/dandi-hub#279", RUNNING, Verdict.HOST_BUSY, 119 * MINUTE, taken=False, shown={"host_busy": True}, front_ends=0,
    ),
    "a download longer than the limit for that": Case(
        "dandi/dandi-hub#279", RUNNING, Verdict.HOST_BUSY, 126 * MINUTE, taken=True, shown={"host_busy": True},
    ),
    "nearly all memory held and nothing done": Case(
        "PrincetonUniversity/job_defense_shield#2", IDLE, Verdict.IDLE, 36 * MINUTE, taken=True, shown={"memory_mib": 136_000},
    ),
    "no utilisation on a slice": Case(
        "XuehaiPan/nvitop#5", IDLE, Verdict.UNKNOWN, 5 * HOUR, taken=False, shown={"busy": None}, on_slice=True,
    ),
    "no utilisation on a slice, at a prompt": Case(
        "dask/distributed#8739", INPUT, Verdict.UNKNOWN, 5 * HOUR, taken=False, shown={"busy": None}, on_slice=True,
    ),
    "the whole GPU's zero is not a slice's": Case(
        "dask/distributed#8739", IDLE, Verdict.UNKNOWN, 5 * HOUR, taken=False, shown={"busy": False, "source": "device"},
        on_slice=True,
    ),
    "the whole GPU's hundred is not a slice's": Case(
        "NordicHPC/sonar#247", IDLE, Verdict.UNKNOWN, 5 * HOUR, taken=False, shown={"busy": True, "source": "device"},
        on_slice=True,
    ),
    "the engines' own counters of the slice count": Case(
        "NordicHPC/sonar#247", IDLE, Verdict.IDLE, 36 * MINUTE, taken=True, shown={"busy": False, "source": "engines"},
        on_slice=True,
    ),
    "a process is listed, its use is missing, memory is steady": Case(
        "Syllo/nvtop#256", RUNNING, Verdict.UNKNOWN, 5 * HOUR, taken=False, shown={"busy": None, "memory_mib": 9_000},
    ),
    "hardly any processor time beside a busy GPU": Case(
        "kubeopt/kubeopt PR #21", IDLE, Verdict.ACTIVE, 5 * HOUR, taken=False, shown={"busy": True, "host_busy": False},
    ),
    "no processor time and nothing known of the GPU": Case(
        "kubeopt/kubeopt PR #21", INPUT, Verdict.UNKNOWN, 5 * HOUR, taken=False, shown={"busy": None, "host_busy": False},
    ),
    "a process of a terminal works on the GPU": Case(
        "skypilot-org/skypilot#6292", IDLE, Verdict.ACTIVE, 5 * HOUR, taken=False, shown={"busy": True, "pid": 4711},
    ),
    "a process left in the background works on the GPU": Case(
        "determined-ai/determined job-config-reference", IDLE, Verdict.ACTIVE, 5 * HOUR, taken=False,
        shown={"busy": True, "pid": 4712}, front_ends=0,
    ),
    "a process left in the background prepares data on the host": Case(
        "determined-ai/determined job-config-reference", IDLE, Verdict.HOST_BUSY, 110 * MINUTE, taken=False,
        shown={"host_busy": True}, front_ends=0,
    ),
    "a counter that sees a fifth of the time proves no rest": Case(
        "lablup/backend.ai PR #2205", IDLE, Verdict.UNKNOWN, 5 * HOUR, taken=False, shown={"busy": False, "window_ms": 12_000},
    ),
    "nobody ever opens a page": Case(
        "jupyter/notebook#6029", IDLE, Verdict.IDLE, 42 * MINUTE, taken=True, front_ends=0,
    ),
    "granted and never used": Case(
        "aws-samples/amazon-sagemaker-notebook-instance-lifecycle-config-samples#16", IDLE, Verdict.NEVER_USED, 21 * MINUTE,
        taken=True, shown={"nobody": True},
    ),
    "a source that gives nothing keeps the GPU": Case(
        "skypilot-org/skypilot#10628", IDLE, Verdict.UNKNOWN, 8 * HOUR, taken=False, shown={"busy": None},
    ),
    "a cell waits in input()": Case(
        "jupyter/notebook#2553", INPUT, Verdict.WAITING_USER, 36 * MINUTE, taken=True,
    ),
    "a cell stands at a breakpoint": Case(
        "ipython/ipykernel#400", DEBUGGER, Verdict.WAITING_USER, 36 * MINUTE, taken=True,
    ),
    "eight gigabytes held at one per cent": Case(
        "AI-Ocean/gpu-usage-audit README", IDLE, Verdict.ACTIVE, 5 * HOUR, taken=False,
        shown={"busy": True, "utilisation_percent": 1, "memory_mib": 8_192},
    ),
    "the Jupyter server is stopped, the kernel waits": Case(
        "OSC/ondemand#3643", INPUT, Verdict.WAITING_USER, 42 * MINUTE, taken=True, front_ends=0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_verdict_is_right_and_the_gpu_goes_or_stays(case: Case) -> None:
    world, lease_id = begun(case)
    until = world.now + case.for_ms
    while world.now < until and world.lease(lease_id).order is None:
        world.wait(MINUTE, MINUTE)
        notice = world.lease(lease_id).notice
        if notice is not None and not notice.shown:
            world.sees_notice(lease_id)
    lease = world.lease(lease_id)
    assert lease.verdict is case.verdict
    assert (lease.order is not None) is case.taken


def begun(case: Case) -> tuple[World, str]:
    """A holder that does what the case says, and somebody who waits for just that."""
    seen = SLICE if case.on_slice else whole(0)
    spec = SlotSpec(profile=SLICE.profile) if case.on_slice else SlotSpec()
    world = World().devices(seen).limits(fresh_ms=2 * MINUTE)
    lease_id = world.holds("k", spec=spec)
    world.offers("k", GiveBackKind.EMPTY, GiveBackKind.RESTARTED)
    world.says("k", case.activity, case.front_ends)
    shown = {"busy": False, **case.shown}
    if not shown.pop("nobody", False):
        world.uses("k", seen.id, **shown)
    world.look()
    world.session("rival")
    world.asks("rival", spec=spec)
    return world, lease_id


# --- reports that need a story of their own -------------------------------------------------------------------------------


def test_a_new_lease_has_a_new_clock_whatever_was_before() -> None:
    """jupyterhub/jupyterhub-idle-culler#43"""
    world = World().devices(whole(0))
    world.session("k")
    world.says("k", IDLE)
    world.passes(10 * HOUR)
    world.look()
    lease_id = world.asks("k")
    world.applies(lease_id)
    world.look()
    lease = world.lease(lease_id)
    assert reclaimable_ms(world.state, lease) == world.now + GENTLE.never_used_ms


def test_nearly_all_memory_and_a_burst_now_and_then_is_work() -> None:
    """PrincetonUniversity/job_defense_shield#2"""
    world, lease_id = begun(Case("", IDLE, Verdict.ACTIVE, 0, taken=False))
    for _ in range(12):
        world.uses("k", "GPU-0", busy=True, memory_mib=136_000)
        world.look()
        world.uses("k", "GPU-0", busy=False, memory_mib=136_000)
        world.wait(25 * MINUTE, MINUTE)
    assert world.lease(lease_id).notices == 0


def test_the_first_samples_without_an_owner_are_not_its_rest() -> None:
    """NVIDIA/dcgm-exporter#68"""
    world = World().devices(SLICE)
    lease_id = world.holds("k", spec=SlotSpec(profile="3g.40gb"))
    world.wait(8 * SECOND, SECOND)
    assert world.lease(lease_id).verdict is Verdict.NEVER_USED
    world.uses("k", SLICE.id, busy=True, source="engines")
    world.look()
    assert world.lease(lease_id).verdict is Verdict.ACTIVE
    world.uses("k", SLICE.id, busy=False, source="engines")
    world.wait(30 * SECOND, SECOND)
    assert world.now - world.lease(lease_id).verdict_since_ms <= 30 * SECOND


@settings(max_examples=30)
@given(st.lists(st.integers(1, 9_900), min_size=5, max_size=30), st.integers(0, 1_000))
def test_the_limit_is_elapsed_time_however_the_ticks_fall(gaps: list[int], late: int) -> None:
    """lablup/backend.ai PR #2205"""
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.look()
    since_ms = world.lease(lease_id).verdict_since_ms
    for gap in gaps:
        world.now = Millis(world.now + gap)
        world.uses("k", "GPU-0", busy=False, window_ms=gap)
        world.look()
    assert world.lease(lease_id).verdict_since_ms == since_ms
    world.now = Millis(world.now + world.state.limits.fresh_ms + late + 1)
    world.look()
    gap = world.lease(lease_id).verdict_since_ms - since_ms
    assert gap == world.state.limits.fresh_ms + late + 1


@pytest.mark.parametrize("grace_ms", [0, 50 * MINUTE])
@pytest.mark.parametrize("is_kept", [False, True])
def test_the_deadline_shown_is_the_moment_of_taking(grace_ms: int, is_kept: bool) -> None:
    """lablup/backend.ai PR #1205"""
    world = World()
    world.do(PolicyApplied((replace(GENTLE, grace_ms=grace_ms),)))
    world.devices(whole(0))
    lease_id = world.holds("k")
    world.offers("k", GiveBackKind.RESTARTED)
    world.uses("k", "GPU-0", busy=False)
    world.look()
    world.session("rival")
    world.asks("rival")
    world.wait(10 * MINUTE)
    if is_kept:
        world.keeps(lease_id, 30 * MINUTE)
    from_ms = reclaimable_ms(world.state, world.lease(lease_id))
    assert from_ms is not None
    world.wait(from_ms - world.now - 1)
    assert world.lease(lease_id).notice is None
    world.wait(SECOND, SECOND)
    notice = world.lease(lease_id).notice
    assert notice is not None
    world.sees_notice(lease_id)
    notice = world.lease(lease_id).notice
    assert notice is not None
    world.wait(notice.due_ms - world.now - 1)
    assert world.lease(lease_id).order is None
    world.wait(SECOND, SECOND)
    assert world.lease(lease_id).order is not None


def test_an_idle_holder_makes_way_before_a_busy_job() -> None:
    """kubeflow/kubeflow#6268"""
    world = World().devices(whole(0), whole(1))
    world.do(PolicyApplied(queues=(Queue("batch", Tier.BATCH, preemptible=True),)))
    lease_id = world.holds("k")
    world.offers("k", GiveBackKind.RESTARTED)
    world.uses("k", "GPU-0", busy=False)
    job_id = world.submits(world.runner(), "j")
    world.job_starts(job_id)
    world.uses(job_id, "GPU-1", busy=True)
    world.limits(fresh_ms=2 * MINUTE).wait(40 * MINUTE, MINUTE)
    world.session("rival")
    world.asks("rival")
    assert world.lease(lease_id).notice is not None
    assert world.job(job_id).cause is None


def test_each_queue_has_its_own_limits() -> None:
    """swan-cern/jupyterhub-extensions#8, jupyterhub/jupyterhub-idle-culler#45, dstackai/dstack#2383"""
    world = World().devices(whole(0))
    short, long = (Policy(n, ms, 0, ms, ms, 0, 0) for n, ms in (("s", MINUTE), ("l", HOUR)))
    queues = (
        Queue("short", Tier.INTERACTIVE, "s"),
        Queue("long", Tier.INTERACTIVE, "l"),
        Queue("never", Tier.INTERACTIVE, None),
    )
    world.do(PolicyApplied((short, long), queues))
    for queue, limit_ms in (("short", MINUTE), ("long", HOUR), ("never", None)):
        lease_id = world.holds(f"k-{queue}", queue=queue)
        world.look()
        from_ms = reclaimable_ms(world.state, world.lease(lease_id))
        assert from_ms == (None if limit_ms is None else world.now + limit_ms)
        world.ends(f"k-{queue}")
        world.look()


@pytest.mark.parametrize(
    "source", ["jupyter/notebook#2526", "jupyter-server/jupyter_server#1360", "jupyter/notebook#7260"]
)  # fmt: skip
def test_pages_that_come_and_go_move_no_clock(source: str) -> None:
    world, lease_id = begun(Case(source, IDLE, Verdict.IDLE, 0, taken=True))
    for number in range(62):
        world.says("k", IDLE, front_ends=number % 3)
        world.wait(30 * SECOND, MINUTE)
    assert world.lease(lease_id).notice is not None


@pytest.mark.parametrize(
    ("shown", "activity", "words"),
    [
        ({"busy": True}, IDLE, "used the GPU"),
        ({"busy": False}, RUNNING, "A cell has been running for 5 min"),
        ({"busy": None}, IDLE, "cannot be read"),
        ({"busy": False, "host_busy": True}, IDLE, "work on the host"),
    ],
)
def test_it_is_told_which_signal_keeps_a_lease_and_since_when(
    shown: dict[str, Any], activity: Activity, words: str
) -> None:
    """jupyter-server/enterprise_gateway#931"""
    world, lease_id = begun(Case("", activity, Verdict.ACTIVE, 0, taken=False, shown=shown))
    world.wait(5 * MINUTE)
    seen = evidence_now(world.state, world.lease(lease_id), world.now)
    assert seen is not None
    assert words in sentence(evidence_reason(seen))[0]


def test_a_holder_that_is_no_kernel_is_watched_too_and_not_taken() -> None:
    """kubeflow/kubeflow#6920: its work and its rest are shown; a program that runs is its own proof of need."""
    world = World().devices(whole(0))
    world.session("c", kind=SessionKind.COMMAND)
    lease_id = world.asks("c")
    world.applies(lease_id)
    world.uses("c", "GPU-0", busy=True)
    world.look()
    assert world.lease(lease_id).verdict is Verdict.ACTIVE
    world.uses("c", "GPU-0", busy=False)
    world.wait(10 * MINUTE)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    assert policy_of(world.state, world.lease(lease_id)) is None


def test_from_rest_to_notice_to_order_to_the_next_holder() -> None:
    """lablup/backend.ai#13273, opendatahub-io/odh-manifests#265: it is really gone, and when."""
    world, lease_id = begun(Case("", IDLE, Verdict.IDLE, 0, taken=True))
    began_ms = world.now
    at: dict[str, int] = {}
    while world.request("rival-lease").lease_id is None:
        world.wait(10 * SECOND, MINUTE)
        lease = world.lease(lease_id)
        if lease.notice is not None and "notice" not in at:
            at["notice"] = world.now - began_ms
            world.sees_notice(lease_id)
        if lease.order is not None:
            at["order"] = world.now - began_ms
            world.answers(lease_id)
            world.empties("GPU-0")
    assert at == {
        "notice": GENTLE.idle_ms,
        "order": GENTLE.idle_ms + GENTLE.notice_ms,
    }
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_the_policy_is_the_queues_whoever_asks_and_however() -> None:
    """dstackai/dstack#955"""
    world = World().devices(whole(0), whole(1))
    by_cell = world.holds("k")
    by_api = world.holds("j", owner="bob", duration_ms=10 * HOUR, wait_ms=None)
    for lease_id in (by_cell, by_api):
        assert policy_of(world.state, world.lease(lease_id)) == GENTLE


def test_the_rule_is_about_the_gpu_for_each_kind_of_holder() -> None:
    """determined-ai/determined#1585"""
    world, lease_id = begun(Case("", IDLE, Verdict.IDLE, 0, taken=True, shown={"host_busy": False}))
    world.wait(31 * MINUTE, MINUTE)
    english, spanish = lease_sentence(world.state, world.lease(lease_id), world.now)
    assert "`%gpu keep`" in english
    assert "`%gpu keep`" in spanish


# --- MIG ------------------------------------------------------------------------------------------------------------------


def test_two_slices_for_one_process_are_refused_with_what_would_do() -> None:
    """pytorch/pytorch#130181"""
    world = World().devices(SLICE, slice_of(0, "b", "3g.40gb", 40_448))
    world.session("k")
    with pytest.raises(Refused) as refused:
        world.asks("k", spec=SlotSpec(2, profile="3g.40gb"))
    assert refused.value.reason.code == "several_slices"


def test_slices_and_whole_gpus_are_judged_side_by_side() -> None:
    """NVIDIA/dcgm-exporter#577"""
    world = World().devices(whole(1), SLICE)
    on_gpu = world.holds("g")
    on_slice = world.holds("s", owner="bob", spec=SlotSpec(profile="3g.40gb"))
    world.uses("g", "GPU-1", busy=False, source="utilisation")
    world.uses("s", SLICE.id, busy=True, source="engines")
    world.wait(MINUTE)
    assert world.lease(on_gpu).verdict is Verdict.IDLE
    assert world.lease(on_slice).verdict is Verdict.ACTIVE


def test_a_lease_names_its_slices() -> None:
    """NVIDIA/deepops#894"""
    world = World().devices(SLICE)
    lease_id = world.holds("k", spec=SlotSpec(memory_mib_min=MiB(20_000)))
    assert [hold.slot_id for hold in world.lease(lease_id).holds] == [SLICE.id]


def test_where_a_site_lets_the_host_decide_a_slice_without_counters_is_taken_at_a_prompt() -> None:
    """XuehaiPan/nvitop#5, with the rule that a site must choose: only at a prompt, only with a host at rest, longest."""
    for activity, host_busy, taken in (
        (INPUT, False, True),
        (INPUT, None, False),
        (INPUT, True, False),
        (IDLE, False, False),
        (RUNNING, False, False),
    ):
        case = Case("", activity, Verdict.UNKNOWN, 0, taken, {"busy": None, "host_busy": host_busy}, on_slice=True)  # fmt: skip
        world, lease_id = begun(case)
        world.do(PolicyApplied((replace(GENTLE, host_decides=True),)))
        world.wait(GENTLE.idle_ms + 5 * MINUTE, MINUTE)
        assert (world.lease(lease_id).notice is not None) is taken, (activity, host_busy)
