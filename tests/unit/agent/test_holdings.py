"""What attribution is told about the broker's state."""

from __future__ import annotations

from jupyter_gpubroker.agent.holdings import Holder, SlotHolding, holdings
from jupyter_gpubroker.core.events import ProcessOwner
from jupyter_gpubroker.core.model import (
    Hold,
    Job,
    JobState,
    Lease,
    LeaseState,
    Session,
    SessionKind,
    SessionState,
    SlotSpec,
    State,
)

BOOT = "boot-1"
SPEC = SlotSpec()


def session(session_id, *, pid=10, boot_id=BOOT, state=SessionState.LIVE):
    return Session(
        id=session_id,
        owner="ana",
        uid=1000,
        kind=SessionKind.KERNEL,
        name="n",
        pid=pid,
        start_ticks=100,
        boot_id=boot_id,
        state=state,
    )


def lease(session_id, *, job_id=None, state=LeaseState.ACTIVE, slot="GPU-1"):
    return Lease(
        id=f"lease-{session_id}",
        owner="ana",
        session_id=session_id,
        queue="interactive",
        holds=(Hold(slot, 3),),
        spec=SPEC,
        job_id=job_id,
        state=state,
    )


def job(job_id, runner_id, *, pid=30, state=JobState.RUNNING):
    return Job(job_id, 1, "ana", "j", runner_id, SPEC, "batch", state, pid=pid, start_ticks=100)


def state(sessions=(), leases=(), jobs=()):
    return State(
        sessions={entry.id: entry for entry in sessions},
        leases={entry.id: entry for entry in leases},
        jobs={entry.id: entry for entry in jobs},
    )


def test_a_live_session_may_hold_with_or_without_a_lease():
    found = holdings(state([session("kernel")]), BOOT)
    assert found.holders == (Holder("kernel", ProcessOwner.SESSION, 1000, 10, 100),)
    assert found.slots == {}


def test_a_lease_names_its_holder_and_epoch_by_slot():
    found = holdings(state([session("kernel")], [lease("kernel")]), BOOT)
    assert found.slots == {"GPU-1": SlotHolding(3, "kernel")}
    assert found.slots["GPU-1"].holder_ids == {"kernel"}


def test_a_jobs_slot_is_the_jobs_and_its_runners():
    found = holdings(
        state([session("runner")], [lease("runner", job_id="job")], [job("job", "runner")]), BOOT
    )
    assert [holder.id for holder in found.holders] == ["runner", "job"]
    assert found.slots["GPU-1"].worker_id == "job"
    assert found.slots["GPU-1"].holder_ids == {"job", "runner"}


def test_an_ended_session_is_known_until_its_lease_is_cleared():
    ended = session("kernel", state=SessionState.ENDED)
    draining = lease("kernel", state=LeaseState.DRAINING)
    cleared = lease("kernel", state=LeaseState.CLEARED)
    assert [holder.id for holder in holdings(state([ended], [draining]), BOOT).holders] == [
        "kernel"
    ]
    assert holdings(state([ended], [cleared]), BOOT).holders == ()
    assert holdings(state([ended], [cleared]), BOOT).slots == {}


def test_pids_of_another_boot_mean_nothing():
    assert holdings(state([session("kernel", boot_id="boot-0")]), BOOT).holders == ()


def test_a_job_that_ended_or_has_not_started_has_no_process():
    runner = session("runner")
    for entry in (job("job", "runner", state=JobState.ENDED), job("job", "runner", pid=None)):
        found = holdings(state([runner], jobs=[entry]), BOOT)
        assert [holder.id for holder in found.holders] == ["runner"]
