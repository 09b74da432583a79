"""Restarts of a kernel below a real Jupyter server: with the lease, or to give it back with everything that can be saved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.kernel.kernels import Rival
from tests.integration.server.jupyter import FrontEnd, JupyterServer, Kernel, running_server, until
from tests.support.broker import RunningBroker

VARIABLES = """
import math, threading
numbers = [1, 2, 3]
same = numbers
lock = threading.Lock()
"""
USE = "from gpubroker import simulated; block = simulated.allocate(64); block.write(b'weights')"


@pytest.fixture(scope="module")
def server(broker: RunningBroker, home: Path) -> Iterator[JupyterServer]:
    quick = ("--KernelRestarter.time_to_dead=0.2", "--GPUBrokerProvisioner.first_use=auto")
    with running_server(broker, home, *quick) as made:
        yield made


@pytest.fixture
def kernel(server: JupyterServer) -> Iterator[Kernel]:
    made = server.start_kernel()
    yield made
    session = made.session()
    made.delete()
    made.until_gone(session.id)


def test_a_process_that_looked_too_early_restarts_with_its_lease(kernel: Kernel) -> None:
    before = kernel.session()
    with kernel.front_end() as page:
        page.run(f"import os; os.environ['{NAME}'] = ''")  # whose user wants none is not asked
        page.run("from gpubroker import simulated; simulated.device_count()")
        assert "%gpu restart" in page.run("%gpu request")
        lease = until("the lease", kernel.active_lease)
        assert "lease is kept" in page.run("%gpu restart")
    kernel.session(other_than=before.id)
    with kernel.front_end() as page:
        until("the devices", lambda: "GPU-" in page.run(f"import os; print(os.environ['{NAME}'])"))
        page.run(USE)
        held = kernel.active_lease()
        assert held is not None
        assert held.id == lease.id


NAME = "CUDA_VISIBLE_DEVICES"


def test_a_restart_gives_the_gpu_back_and_keeps_what_can_be_saved(
    kernel: Kernel, broker: RunningBroker
) -> None:
    before = kernel.session()
    with kernel.front_end() as page:
        page.run(f"%gpu request\n{USE}\n{VARIABLES}")
        request = page.execute("%gpu release")
        asked = page.wait_for("input_request", request)
        assert "restart" in asked["content"]["prompt"]
        page.answer("r")
        page.wait_for("input_request", request)
        # Prompts and outputs travel on channels of their own, so either may come first.
        while "It loses lock" not in printed(page):
            page.receive()
        assert "block, numbers, same" in printed(page)
        page.answer("y")
        reply = page.wait_for("execute_reply", request)
        assert reply["content"]["status"] == "ok"
        kernel.session(other_than=before.id)
        assert "restarting without a GPU" in printed(page)
    assert kernel.active_lease() is None
    with kernel.front_end() as page:
        assert "%gpu restore" in page.run("print('first cell')")
        assert "Restored: block, numbers, same" in page.run("%gpu restore")
        assert kernel.active_lease() is None  # though loading it imported a library that uses GPUs
        found = page.run("print(numbers is same, math.sqrt(4), block.location, 'lock' in dir())")
        assert found.strip() == "True 2.0 host False"


def test_with_consent_an_idle_kernel_is_restarted_for_somebody_who_waits(
    kernel: Kernel, broker: RunningBroker
) -> None:
    before = kernel.session()
    with kernel.front_end() as page:
        page.run(f"%gpu request\n{USE}\n{VARIABLES}\nimport gpubroker, gpubroker.runtime")
        # Nothing milder works for this process.
        page.run(
            "gpubroker.runtime.current().offers._parking.refusal = lambda _: {'code': 'no_parker', 'values': {}}"
        )
        page.run("simulated.initialize(uvm=True)")
        assert "It loses lock" in page.run("gpubroker.consent_restart()")
        with Rival(broker) as rival:
            rival.until_served()
            rival.gives_back()
    kernel.session(other_than=before.id)
    with kernel.front_end() as page:
        assert "numbers" in page.run("%gpu restore")


def test_without_consent_nothing_is_destroyed(kernel: Kernel, broker: RunningBroker) -> None:
    with kernel.front_end() as page:
        page.run(f"%gpu request\n{USE}\nimport gpubroker, gpubroker.runtime")
        page.run(
            "gpubroker.runtime.current().offers._parking.refusal = lambda _: {'code': 'no_parker', 'values': {}}"
        )
        page.run("simulated.initialize(uvm=True)")
        with Rival(broker):
            until("the refusal", lambda: _is_kept(kernel))
        assert page.run("print(block.read())").strip() == "b'weights'"


def printed(page: FrontEnd) -> str:
    streams = [m["content"] for m in page.messages if m["header"]["msg_type"] == "stream"]
    return "".join(content["text"] for content in streams)


def _is_kept(kernel: Kernel) -> bool:
    lease = kernel.active_lease()
    reason = lease.reason if lease else None
    return reason is not None and reason.code == "holder_cannot_give_back"
