"""A real broker and processes that use GPUs they were not lent."""

from __future__ import annotations

import os
import subprocess
import sys

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.client.places import simulated_beside
from jupyter_gpubroker.wire.bodies import RequestBody, SessionBody
from jupyter_gpubroker.wire.views import SlotView
from tests.support.broker import Holder, RunningBroker, new_id, running_broker

BURN = "from gpubroker import simulated; print(1, flush=True); simulated.burn(600)"
STOPPING = '[limits]\nunleased_stop = "200ms"\nunleased_kill = "5s"\n'
KERNEL = "sleep infinity & echo $!; wait"


def slot_with(broker: RunningBroker, code: str | None) -> SlotView:
    """The first slot, once it gives this reason."""
    for view in broker.client.watch(routes.GPUS):
        slot = view.gpus[0].slots[0]
        if (None if slot.reason is None else slot.reason.code) == code:
            return slot
    raise AssertionError("a watch never ends")


def test_a_process_without_a_lease_is_told_of_and_stopped_where_the_policy_says_so(folders) -> None:
    with running_broker("1xL4", policy=STOPPING) as broker:
        slot = broker.client.call(routes.GPUS).gpus[0].slots[0]
        environ = {
            **os.environ,
            "CUDA_VISIBLE_DEVICES": slot.id,
            "GPUBROKER_SIMULATED_STATE": str(simulated_beside(broker.url)),
        }
        with subprocess.Popen([sys.executable, "-c", BURN], env=environ, stdout=-1) as stranger:
            seen = slot_with(broker, "process_on_slot")
            assert (seen.state, seen.reason and seen.reason.values["pid"]) == (
                "quarantined",
                stranger.pid,
            )
            assert stranger.wait(10) == -15
        assert slot_with(broker, None).state == "free"
        log = broker.places.log.read_text()
        assert f"unleased_use slot={slot.id} kind=unleased pid={stranger.pid}" in log
        assert f"process_stopped pid={stranger.pid} force=False outcome=signalled" in log


def test_a_child_of_a_killed_kernel_that_is_not_on_the_gpu_yet_holds_its_slot(folders) -> None:
    with running_broker("1xL4") as broker, Holder(broker) as next_in_line:
        with subprocess.Popen(["sh", "-c", KERNEL], stdout=-1, start_new_session=True) as kernel:
            assert kernel.stdout is not None
            child = int(kernel.stdout.readline())
            session_id = new_id()
            body = SessionBody(kind="kernel", name="left.ipynb", pid=kernel.pid)
            broker.client.call(routes.PUT_SESSION, session_id, body)
            granted = broker.client.call(routes.PUT_REQUEST, new_id(), RequestBody(session_id))
            assert granted.lease is not None
            broker.client.call(routes.ACKNOWLEDGE, granted.lease.id)
            waiting = next_in_line.ask()
            kernel.kill()
        seen = slot_with(broker, "left_behind")
        assert (seen.state, seen.reason and seen.reason.values["pid"]) == ("draining", child)
        os.kill(child, 9)
        for view in broker.client.watch(routes.REQUEST, waiting.id):
            if view.state == "granted":
                break
