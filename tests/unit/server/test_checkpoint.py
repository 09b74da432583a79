"""What the helper that suspends answers, turned into offers and answers to orders."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jupyter_gpubroker.client.places import Places
from jupyter_gpubroker.server.checkpoint import Checkpoints
from jupyter_gpubroker.server.child import ChildFailed
from jupyter_gpubroker.wire.bodies import AnswerBody, OfferBody, ReasonBody
from jupyter_gpubroker.wire.views import OrderView
from tests.conftest import Folders
from tests.unit.server.double import lease_view, order
from tests.unit.server.test_link import launched

pytestmark = pytest.mark.asyncio

KERNEL = launched(42)
LEASE = "e" * 32
REFUSAL = {"code": "uvm_memory", "values": {"mib": 7}}


class Helper:
    """Stands for the child process."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[Any, ...]] = []

    async def call(self, method: str, *params: Any, deadline_s: float) -> Any:
        assert 0 < deadline_s <= 60
        self.calls.append((method, *params))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def checkpoints(*answers: Any) -> tuple[Checkpoints, Helper]:
    made, helper = Checkpoints(Places.find()), Helper(*answers)
    object.__setattr__(made, "_child", helper)
    return made, helper


def outcome(
    *refusals: Any, ok: bool = True, memory_mib: int = 0, state: str = "running"
) -> dict[str, Any]:
    return {
        "ok": ok,
        "state": state,
        "memory_mib": memory_mib,
        "took_ms": 1,
        "refusals": list(refusals),
    }


async def test_what_would_work_is_offered_and_what_would_not_is_refused(folders: Folders) -> None:
    made, helper = checkpoints([], [REFUSAL], ChildFailed("can: TimeoutError"))
    lease = lease_view(LEASE, slots=("GPU-1",))
    assert await made.offer(KERNEL, lease) == OfferBody(kinds=("checkpointed",), by_server=True)
    refused = await made.offer(KERNEL, lease)
    assert refused == OfferBody(
        refusals={"checkpointed": ReasonBody("uvm_memory", {"mib": 7})}, by_server=True
    )
    failed = (await made.offer(KERNEL, lease)).refusals["checkpointed"]
    assert failed.code == "checkpoint_helper_failed"
    assert helper.calls == [("can", 42, "GPU-1")] * 3


async def test_several_gpus_are_refused_without_asking(folders: Folders) -> None:
    made, helper = checkpoints()
    lease = lease_view(LEASE, slots=("GPU-1", "GPU-2"))
    [refusal] = (await made.offer(KERNEL, lease)).refusals.values()
    answer = await made.carry_out(KERNEL, lease, order(1, "checkpointed"))
    assert refusal == answer.reason == ReasonBody("several_gpus", {"gpus": 2})
    assert helper.calls == []


async def test_what_was_suspended_comes_back_with_the_memory_it_had(folders: Folders) -> None:
    made, helper = checkpoints(outcome(memory_mib=500), outcome())
    lease = lease_view(LEASE, slots=("GPU-1",))
    assert await made.carry_out(KERNEL, lease, order(1, "checkpointed")) == AnswerBody(1, ok=True)
    back = order(2, "checkpointed", resume=True)
    assert await made.carry_out(KERNEL, lease, back) == AnswerBody(2, ok=True)
    assert helper.calls == [("suspend", 42, "GPU-1", 10_000), ("resume", 42, "GPU-1", 500)]


async def test_the_wait_for_running_work_is_never_longer_than_the_order(folders: Folders) -> None:
    made, helper = checkpoints(outcome())
    short = OrderView(number=1, kind="checkpointed", resume=False, due_in_ms=300)
    await made.carry_out(KERNEL, lease_view(LEASE), short)
    assert helper.calls[0][3] == 300


@pytest.mark.parametrize("resume", [False, True])
async def test_a_refusal_is_answered_with_its_reason(folders: Folders, resume: bool) -> None:
    ended = [ChildFailed("ended"), outcome(state="gone", ok=False)]
    made, _ = checkpoints(outcome(REFUSAL, ok=False, state="failed"), *ended)
    command = order(1, "checkpointed", resume=resume)
    answer = await made.carry_out(KERNEL, lease_view(LEASE), command)
    assert answer == AnswerBody(1, ok=False, reason=ReasonBody("uvm_memory", {"mib": 7}))
    failed = await made.carry_out(KERNEL, lease_view(LEASE), command)
    assert not failed.ok
    assert failed.reason is not None
    assert failed.reason.code == "checkpoint_helper_failed"


# --- a helper that fails half-way -----------------------------------------------------------------

FAILED = {"code": "driver_error", "values": {}}
RESUMED = ("resume", 42, "GPU-1", 400)  # with the memory that was seen on the slot


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_gpubroker.server.checkpoint.PAUSES_S", (0.0,))


@pytest.mark.usefixtures("folders", "no_pauses")
@pytest.mark.parametrize(
    "first",
    [
        ChildFailed("suspend: TimeoutError"),
        outcome(FAILED, ok=False, state="locked"),
        outcome(FAILED, ok=False, state="checkpointed"),
        outcome(FAILED, ok=False, state="unknown"),
    ],
)
@pytest.mark.parametrize("end", ["running", "gone", "failed"])
async def test_what_was_not_suspended_is_brought_back_before_the_answer(
    first: Any, end: str
) -> None:
    tries = [
        ChildFailed("not started"),
        outcome(FAILED, ok=False, state="locked"),
        outcome(FAILED, ok=False, state="checkpointed"),
        outcome(ok=end == "running", state=end),
    ]
    made, helper = checkpoints(first, *tries)
    answer = await made.carry_out(KERNEL, lease_view(LEASE), order(1, "checkpointed"))
    assert not answer.ok
    assert answer.reason is not None
    assert answer.reason.code in ("checkpoint_helper_failed", "driver_error")
    assert helper.calls[1:] == [RESUMED] * 4


@pytest.mark.usefixtures("folders")
async def test_a_suspension_that_is_done_too_late_is_undone() -> None:
    made, helper = checkpoints(outcome(memory_mib=500, state="checkpointed"), outcome())
    late = OrderView(number=1, kind="checkpointed", resume=False, due_in_ms=1)
    suspend = helper.call

    async def call(method: str, *params: Any, deadline_s: float) -> Any:
        if method == "suspend":
            await asyncio.sleep(deadline_s)
        return await suspend(method, *params, deadline_s=deadline_s)

    helper.call = call  # type: ignore[method-assign]
    answer = await made.carry_out(KERNEL, lease_view(LEASE), late)
    reason = ReasonBody("order_overdue", {"kind": "checkpointed"})
    assert answer == AnswerBody(1, ok=False, reason=reason)
    assert [method for method, *_ in helper.calls] == ["suspend", "resume"]
    assert helper.calls[1][-1] == 500


@pytest.mark.usefixtures("folders", "no_pauses")
async def test_a_return_that_succeeds_at_a_later_try_has_succeeded() -> None:
    tries = [ChildFailed("ended"), outcome(FAILED, ok=False, state="locked"), outcome()]
    made, helper = checkpoints(*tries)
    back = order(2, "checkpointed", resume=True)
    assert await made.carry_out(KERNEL, lease_view(LEASE), back) == AnswerBody(2, ok=True)
    assert len(helper.calls) == 3


@pytest.mark.usefixtures("folders")
async def test_what_cannot_return_yet_stays_suspended_and_is_not_tried_again() -> None:
    short = {"code": "slot_memory_short", "values": {"needed_mib": 2, "free_mib": 1}}
    made, helper = checkpoints(outcome(short, ok=False, state="checkpointed"))
    back = order(2, "checkpointed", resume=True)
    answer = await made.carry_out(KERNEL, lease_view(LEASE), back)
    assert (answer.ok, answer.reason and answer.reason.code) == (False, "slot_memory_short")
    assert len(helper.calls) == 1


@pytest.mark.usefixtures("folders", "no_pauses")
async def test_another_order_is_refused_while_a_process_is_brought_back() -> None:
    made, helper = checkpoints(ChildFailed("ended"))
    began, may_end = asyncio.Event(), asyncio.Event()
    suspend = helper.call

    async def call(method: str, *params: Any, deadline_s: float) -> Any:
        if method == "suspend":
            return await suspend(method, *params, deadline_s=deadline_s)
        began.set()
        await may_end.wait()
        return outcome()

    helper.call = call  # type: ignore[method-assign]
    lease = lease_view(LEASE)
    first = asyncio.create_task(made.carry_out(KERNEL, lease, order(1, "checkpointed")))
    await began.wait()
    second = await made.carry_out(KERNEL, lease, order(2, "checkpointed"))
    assert (second.number, second.ok) == (2, False)
    assert not first.done()
    may_end.set()
    assert not (await first).ok
    assert [method for method, *_ in helper.calls] == ["suspend"]


@pytest.mark.parametrize(
    ("resume", "state", "undone"),
    [(False, "active", "resume"), (True, "parked", "suspend"), (True, "cleared", None)],
)
async def test_what_came_too_late_is_put_back_to_how_it_was(
    folders: Folders, resume: bool, state: str, undone: str | None
) -> None:
    made, helper = checkpoints(outcome())
    late = order(1, "checkpointed", resume=resume)
    await made.undo(KERNEL, lease_view(LEASE), late, lease_view(LEASE, state=state))
    assert [method for method, *_ in helper.calls] == ([undone] if undone else [])
