"""What attribution is told about the broker's state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from jupyter_gpubroker.agent.holdings import Holder, SlotHolding, holdings
from jupyter_gpubroker.core.events import ProcessOwner
from jupyter_gpubroker.core.model import (
    GiveBackKind,
    Hold,
    Job,
    JobId,
    JobState,
    Lease,
    LeaseId,
    LeaseState,
    Owner,
    Session,
    SessionId,
    SessionKind,
    SessionState,
    SlotId,
    SlotSpec,
    State,
)

BOOT = "boot-1"
ANA = Owner("ana")
SLOT = SlotId("GPU-1")
SPEC = SlotSpec()


def session(
    session_id: str, *, boot_id: str = BOOT, state: SessionState = SessionState.LIVE
) -> Session:
    return Session(
        id=SessionId(session_id),
        owner=ANA,
        uid=1000,
        kind=SessionKind.KERNEL,
        name="n",
        pid=10,
        start_ticks=100,
        boot_id=boot_id,
        state=state,
    )


def lease(
    session_id: str, *, job_id: str | None = None, state: LeaseState = LeaseState.ACTIVE
) -> Lease:
    return Lease(
        id=LeaseId(f"lease-{session_id}"),
        owner=ANA,
        session_id=SessionId(session_id),
        queue="interactive",
        holds=(Hold(SLOT, 3),),
        spec=SPEC,
        job_id=None if job_id is None else JobId(job_id),
        state=state,
    )


def job(
    job_id: str, runner_id: str, *, pid: int | None = 30, state: JobState = JobState.RUNNING
) -> Job:
    return Job(
        id=JobId(job_id),
        number=1,
        owner=ANA,
        name="j",
        session_id=SessionId(runner_id),
        spec=SPEC,
        queue="batch",
        state=state,
        pid=pid,
        start_ticks=100,
    )


def state(
    sessions: Sequence[Session] = (), leases: Sequence[Lease] = (), jobs: Sequence[Job] = ()
) -> State:
    return State(
        sessions={entry.id: entry for entry in sessions},
        leases={entry.id: entry for entry in leases},
        jobs={entry.id: entry for entry in jobs},
    )


def test_a_live_session_may_hold_with_or_without_a_lease():
    found = holdings(state([session("kernel")]), BOOT)
    assert found.holders == (Holder("kernel", ProcessOwner.SESSION, 1000, 10, 100, mark="kernel"),)
    assert found.slots == {}


def test_a_lease_names_its_holder_and_epoch_by_slot():
    found = holdings(state([session("kernel")], [lease("kernel")]), BOOT)
    assert found.slots == {SLOT: SlotHolding(3, "kernel")}
    assert found.slots[SLOT].holder_ids == {"kernel"}


def test_a_jobs_slot_is_the_jobs_and_its_runners():
    found = holdings(
        state([session("runner")], [lease("runner", job_id="job")], [job("job", "runner")]), BOOT
    )
    assert [holder.id for holder in found.holders] == ["runner", "job"]
    assert found.slots[SLOT].worker_id == "job"
    assert found.slots[SLOT].holder_ids == {"job", "runner"}


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


def test_the_incarnations_before_a_restart_stand_for_their_successor():
    first = session("first", state=SessionState.ENDED)
    second = replace(session("second", state=SessionState.ENDED), pid=11, predecessor=first.id)
    third = replace(session("third"), pid=12, predecessor=second.id)
    found = holdings(state([first, second, third], [lease("third")]), BOOT)
    assert [(holder.id, holder.pid, holder.mark) for holder in found.holders] == [
        ("third", 12, "third"),
        ("third", 11, "second"),
        ("third", 10, "first"),
    ]


def test_a_predecessor_whose_own_lease_is_not_cleared_stands_for_itself():
    first = session("first", state=SessionState.ENDED)
    second = replace(session("second"), pid=11, predecessor=first.id)
    leases = [lease("first", state=LeaseState.DRAINING)]
    found = holdings(state([first, second], leases), BOOT)
    assert {(holder.id, holder.mark) for holder in found.holders} == {
        ("first", "first"),
        ("second", "second"),
    }


@pytest.mark.parametrize(
    ("gave_back", "is_deserted"),
    [(None, True), (GiveBackKind.RESTARTED, True), (GiveBackKind.EMPTY, False)],
)
def test_a_slot_whose_holder_let_go_is_leaving_and_deserted_if_its_process_ended(
    gave_back, is_deserted
):
    draining = replace(lease("kernel", state=LeaseState.DRAINING), gave_back=gave_back)
    held = holdings(state([session("kernel")], [draining]), BOOT).slots[SLOT]
    assert (held.is_leaving, held.is_deserted) == (True, is_deserted)


def test_a_slot_that_is_held_is_neither():
    held = holdings(state([session("kernel")], [lease("kernel")]), BOOT).slots[SLOT]
    assert (held.is_leaving, held.is_deserted) == (False, False)
