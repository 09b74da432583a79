"""The checkpoint helper as others use it: a child process that answers JSON lines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.fixture
def ask(state, reader):
    helper = subprocess.Popen(
        [sys.executable, "-m", "jupyter_gpubroker.devices.checkpoint", "--simulated", str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(method, *params):
        assert helper.stdin is not None
        assert helper.stdout is not None
        helper.stdin.write(json.dumps({"id": 7, "method": method, "params": params}) + "\n")
        helper.stdin.flush()
        answer = json.loads(helper.stdout.readline())
        assert answer.pop("id") == 7
        return answer

    yield ask
    helper.communicate()
    assert helper.returncode == 0


def test_it_suspends_and_resumes_and_says_what_it_did(ask, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run("buffer = simulated.allocate(100)")
    assert ask("state", worker.pid) == {"result": "running"}
    assert ask("can", worker.pid, slots[0]) == {"result": []}

    outcome = ask("suspend", worker.pid, slots[0], 1000)["result"]
    assert outcome.pop("took_ms") >= 0
    assert outcome == {"ok": True, "state": "checkpointed", "memory_mib": 500, "refusals": []}
    assert ask("state", worker.pid) == {"result": "checkpointed"}

    assert ask("resume", worker.pid, slots[0], 500)["result"]["ok"] is True
    worker.run("buffer.read()")


def test_it_names_why_not(ask, slots, start_worker):
    worker = start_worker(slots[2])
    worker.run("simulated.initialize(uvm=True)")
    assert ask("can", worker.pid, slots[2]) == {
        "result": [{"code": "mig_slot", "values": {}}, {"code": "uvm_memory", "values": {}}]
    }


def test_a_wrong_call_is_an_error_and_not_the_end(ask):
    assert "KeyError" in ask("explode")["error"]
    assert ask("state", 0) == {"result": "gone"}


def test_without_bindings_and_driver_real_hardware_is_refused(slots):
    answer = subprocess.run(
        [sys.executable, "-m", "jupyter_gpubroker.devices.checkpoint"],
        input=json.dumps({"id": 1, "method": "can", "params": [1, slots[0]]}) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    (refusal,) = json.loads(answer.stdout)["result"]
    assert refusal["code"] in ("bindings_missing", "driver_missing")
