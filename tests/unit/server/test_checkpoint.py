"""What the helper that suspends answers, turned into offers and answers to orders."""

from __future__ import annotations

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


def outcome(*refusals: Any, ok: bool = True, memory_mib: int = 0) -> dict[str, Any]:
    return {
        "ok": ok,
        "state": "running",
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
    assert helper.calls == [("can", 42, "GPU-1", [])] * 3


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
    assert helper.calls == [("suspend", 42, "GPU-1", 10_000, []), ("resume", 42, "GPU-1", 500)]


async def test_the_wait_for_running_work_is_never_longer_than_the_order(folders: Folders) -> None:
    made, helper = checkpoints(outcome())
    short = OrderView(number=1, kind="checkpointed", resume=False, due_in_ms=300)
    await made.carry_out(KERNEL, lease_view(LEASE), short)
    assert helper.calls[0][3] == 300


@pytest.mark.parametrize("resume", [False, True])
async def test_a_refusal_is_answered_with_its_reason(folders: Folders, resume: bool) -> None:
    made, _ = checkpoints(outcome(REFUSAL, ok=False), ChildFailed("ended"))
    command = order(1, "checkpointed", resume=resume)
    answer = await made.carry_out(KERNEL, lease_view(LEASE), command)
    assert answer == AnswerBody(1, ok=False, reason=ReasonBody("uvm_memory", {"mib": 7}))
    failed = await made.carry_out(KERNEL, lease_view(LEASE), command)
    assert not failed.ok
    assert failed.reason is not None
    assert failed.reason.code == "checkpoint_helper_failed"
