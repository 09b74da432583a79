"""Kernels of a real Jupyter server with a real broker: how they start, restart, die and end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import jupyter_gpubroker
from jupyter_gpubroker.client import routes
from tests.conftest import Folders
from tests.integration.server.jupyter import JupyterServer, running_server, until
from tests.support.broker import RunningBroker, running_broker

OURS = str(Path(jupyter_gpubroker.__file__).parent)


@pytest.fixture(scope="module")
def broker(module_folders: Folders) -> Iterator[RunningBroker]:
    with running_broker("2xH200") as made:
        yield made


@pytest.fixture(scope="module")
def shared_server(broker: RunningBroker, module_folders: Folders) -> Iterator[JupyterServer]:
    quick = ("--KernelRestarter.time_to_dead=0.3", "--KernelRestarter.restart_limit=2")
    with running_server(broker, module_folders.root, *quick) as made:
        yield made


@pytest.fixture
def server(shared_server: JupyterServer, broker: RunningBroker) -> Iterator[JupyterServer]:
    """The one server, without kernels."""
    yield shared_server
    shared_server.delete_kernels()
    until("both slots free", lambda: slot_states(broker) == ["free", "free"])


def slot_states(broker: RunningBroker) -> list[str]:
    return [slot.state for gpu in broker.client.call(routes.GPUS).gpus for slot in gpu.slots]


def test_no_way_out_of_a_kernel_shows_a_gpu_without_a_lease(server: JupyterServer) -> None:
    with server.start_kernel().front_end() as page:
        cell = "import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))"
        assert page.run(cell).strip() == "''"
        shown = 'echo "[${CUDA_VISIBLE_DEVICES-unset}]"'
        assert page.run(f"!{shown}").strip() == "[]"
        assert page.run(f"%%bash\n{shown}").strip() == "[]"
        child = "import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', %r], text=True))"
        assert page.run(child % cell).strip() == "''"


def test_a_requested_restart_keeps_the_lease(server: JupyterServer) -> None:
    kernel = server.start_kernel("work.ipynb")
    before = kernel.session()
    lease = kernel.acquire()
    kernel.restart()
    after = kernel.session(other_than=before.id)
    assert after.name.endswith("work.ipynb")
    with kernel.front_end() as page:
        seen = page.run("print(open(f'/proc/{__import__(\"os\").getpid()}/environ').read())")
    assert f"CUDA_VISIBLE_DEVICES={lease.visible_devices}\0" in seen
    held = kernel.active_lease()
    assert held is not None
    assert (held.id, held.slots, held.session_id) == (lease.id, lease.slots, after.id)


def test_a_kill_ends_the_lease_and_the_kernel_starts_again_without(
    server: JupyterServer, broker: RunningBroker
) -> None:
    kernel = server.start_kernel()
    before = kernel.session()
    lease = kernel.acquire()
    pid = kernel.pid
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    until("both slots free", lambda: slot_states(broker) == ["free", "free"])
    assert time.monotonic() - killed < 2.0
    kernel.session(other_than=before.id)
    assert broker.client.call(routes.LEASE, lease.id).state == "cleared"
    with kernel.front_end() as page:
        assert (
            page.run("import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))").strip() == "''"
        )


def test_a_kernel_that_dies_too_often_is_forgotten(server: JupyterServer) -> None:
    kernel = server.start_kernel()
    for _ in range(3):
        session = kernel.session()
        os.kill(kernel.pid, signal.SIGKILL)
        kernel.until_gone(session.id)
    until(
        "the kernel's end", lambda: server.http.get(f"/api/kernels/{kernel.id}").status_code == 404
    )
    assert kernel.sessions() == []
    other = server.start_kernel()
    other.until_activity("idle")


def test_a_kernel_that_is_shut_down_gives_its_slot_back(
    server: JupyterServer, broker: RunningBroker
) -> None:
    kernel = server.start_kernel()
    kernel.acquire()
    kernel.delete()
    until("both slots free", lambda: slot_states(broker) == ["free", "free"])
    assert kernel.sessions() == []


def test_a_server_that_is_ended_ends_its_kernels_sessions(
    broker: RunningBroker, folders: Folders
) -> None:
    with running_server(broker, folders.root) as server:
        kernels = [server.start_kernel(), server.start_kernel()]
        kernels[0].acquire()
        assert server.stop() == 0
        until("both slots free", lambda: slot_states(broker) == ["free", "free"])
        assert all(kernel.sessions() == [] for kernel in kernels)
        log = server.log.read_text()
    for trouble in ("link_round_failed", "server_task_failed"):
        assert trouble not in log
    # Kernels write there too, and ipykernel leaves tasks of its own behind: "Task was destroyed but it is pending!"
    assert [line for line in log.splitlines() if line.startswith("task: ") and OURS in line] == []


def test_a_server_that_stands_still_costs_no_kernel_its_lease(
    server: JupyterServer, broker: RunningBroker
) -> None:
    kernel = server.start_kernel()
    lease = kernel.acquire()
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    still = kernel.active_lease()
    server.process.send_signal(signal.SIGCONT)
    assert still is not None
    assert still.id == lease.id
    with kernel.front_end() as page:
        page.run("pass")
    kernel.until_activity("idle")


def test_kernels_outlive_the_broker(server: JupyterServer, broker: RunningBroker) -> None:
    kernel = server.start_kernel()
    lease = kernel.acquire()
    broker.kill()
    broker.start()
    held = until("the lease", kernel.active_lease)
    assert held.id == lease.id
    with kernel.front_end() as page:
        page.execute("input()")
        page.wait_for("input_request")
        kernel.until_activity("input")
        page.answer("")
