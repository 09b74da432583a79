"""The extension in a real server: without a broker, switched off, misconfigured, headless, and with orders to carry out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import websocket

from jupyter_gpubroker.client import Places, routes
from jupyter_gpubroker.server.extension import PROVISIONER
from jupyter_gpubroker.wire.bodies import ReleaseBody
from jupyter_gpubroker.wire.views import LeaseView
from tests.conftest import Folders
from tests.integration.server.jupyter import (
    TOKEN,
    WAIT_S,
    JupyterServer,
    Kernel,
    configure,
    running_server,
    until,
)
from tests.support.broker import RunningBroker, running_broker

BURN = "import gpubroker.simulated as sim; sim.burn(0.1, 100); data = sim.allocate(64); print(sim.checksums())"
READ = "print(sim.checksums())"
ENVIRON = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.fixture(scope="module")
def broker(module_folders: Folders) -> Iterator[RunningBroker]:
    with running_broker("1xH200") as made:
        yield made


@pytest.fixture(scope="module")
def server(broker: RunningBroker, module_folders: Folders) -> Iterator[JupyterServer]:
    """One for the tests of what an ordinary server does."""
    plain = "--GPUBrokerProvisioner.first_use=none"
    with running_server(broker, module_folders.root, plain) as made:
        yield made


@pytest.fixture
def kernel(server: JupyterServer, broker: RunningBroker) -> Iterator[Kernel]:
    yield server.start_kernel()
    server.delete_kernels()
    until("no sessions", lambda: broker.client.call(routes.SESSIONS).sessions == ())


def start_plainly(server: JupyterServer) -> Kernel:
    answer = server.http.post("/api/kernels", json={"name": "python3"}).raise_for_status()
    return Kernel(server, answer.json()["id"])


def environ_of(kernel: Kernel) -> dict[str, str]:
    with kernel.front_end() as page:
        found: dict[str, str] = json.loads(page.run(ENVIRON))
    return found


def test_without_a_broker_kernels_start_on_the_cpu(broker: RunningBroker, folders: Folders) -> None:
    nowhere = f"unix://{folders.root}/nowhere.sock"
    with running_server(
        broker, folders.root, f"--GPUBrokerExtension.broker_url={nowhere}"
    ) as server:
        environ = environ_of(start_plainly(server))
        assert environ["CUDA_VISIBLE_DEVICES"] == ""
        assert environ["GPUBROKER_URL"] == nowhere
        log = server.log.read_text()
    assert log.count("broker_not_usable") == 1, "said once, not at each try"
    assert "Traceback" not in log


def test_switched_off_nothing_is_touched_and_the_magic_says_so(
    broker: RunningBroker, folders: Folders
) -> None:
    with running_server(broker, folders.root, GPUBROKER="off") as server:
        kernel = start_plainly(server)
        environ = environ_of(kernel)
        with kernel.front_end() as page:
            assert "switched off" in page.run("%gpu request")
    assert "CUDA_VISIBLE_DEVICES" not in environ
    assert not environ.keys() & {"GPUBROKER_SESSION", "GPUBROKER_URL", "GPUBROKER_INHERITED"}
    assert broker.client.call(routes.SESSIONS).sessions == ()


def test_a_misspelt_setting_is_an_error_at_the_start(folders: Folders) -> None:
    configure(Path(os.environ["JUPYTER_CONFIG_DIR"]))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser"),
            *("--ServerApp.port=0", "--GPUBrokerProvisioner.firstuse=none"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "Did you mean c.GPUBrokerProvisioner.first_use?" in done.stderr
    assert not Places.find().socket.exists()


def test_an_encrypted_kernel_is_watched_as_well(broker: RunningBroker, folders: Folders) -> None:
    encrypted = "--MappingKernelManager.transport_encryption=required"
    with running_server(broker, folders.root, encrypted) as server:
        kernel = server.start_kernel()
        with kernel.front_end() as page:
            page.execute("input()")
            page.wait_for("input_request")
            kernel.until_activity("input")
            page.answer("")
            kernel.until_activity("idle")


def test_a_terminal_sees_no_gpu_either(server: JupyterServer) -> None:
    until("the connection", lambda: "broker_connected" in server.log.read_text())
    name = server.http.post("/api/terminals").raise_for_status().json()["name"]
    url = server.url.replace("http", "ws", 1)
    terminal = websocket.create_connection(
        f"{url}/terminals/websocket/{name}?token={TOKEN}", timeout=WAIT_S
    )
    shows = 'echo "<<${CUDA_VISIBLE_DEVICES-unset}>>"\r'
    terminal.send(json.dumps(["stdin", shows]))
    shown = ""
    while "<<>>" not in shown:
        shown += json.loads(terminal.recv())[-1] or ""
        assert "<<unset>>" not in shown
    terminal.close()
    server.http.delete(f"/api/terminals/{name}")


def test_a_notebook_run_without_a_server_is_headless_and_gets_no_gpu_unasked(
    broker: RunningBroker, folders: Folders
) -> None:
    wait = (
        "import os, time, gpubroker.broker as b\n"
        "session, url = os.environ['GPUBROKER_SESSION'], os.environ['GPUBROKER_URL']\n"
        "due, found = time.monotonic() + 20, None\n"
        "while found is None and time.monotonic() < due:\n"
        "    try:\n"
        "        found = b.Broker(url).session(session, None, 0).view\n"
        "    except Exception:\n"
        "        time.sleep(0.1)\n"
        "print(found['kind'], found['server_id'], repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    )
    cell: dict[str, object] = {
        "cell_type": "code",
        "source": wait,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]}
    path = folders.root / "headless.ipynb"
    path.write_text(json.dumps(notebook))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "nbconvert",
            "--execute",
            "--to",
            "notebook",
            "--inplace",
            str(path),
        ],
        env={**broker.environ, "JUPYTER_DEFAULT_PROVISIONER_NAME": PROVISIONER},
        check=True,
        timeout=60,
        capture_output=True,
    )
    [output] = json.loads(path.read_text())["cells"][0]["outputs"]
    assert "".join(output["text"]).split() == ["kernel", "None", "''"]
    until("the session's end", lambda: broker.client.call(routes.SESSIONS).sessions == ())


def test_a_kernel_is_suspended_and_brought_back_on_order(
    kernel: Kernel, broker: RunningBroker
) -> None:
    lease = kernel.acquire()
    with kernel.front_end() as page:
        before = page.run(BURN)
        offered = until("the offer", lambda: leased(broker, lease, offers="checkpointed"))
        assert "checkpointed" in offered.give_backs
        broker.client.call(routes.RELEASE, lease.id, ReleaseBody(kind="checkpointed"))
        parked = until("suspension", lambda: leased(broker, lease, state="parked"))
        assert parked.gave_back == "checkpointed"
        [slot] = [s for gpu in broker.client.call(routes.GPUS).gpus for s in gpu.slots]
        assert (slot.state, slot.memory_used_mib) == ("free", 0)
        assert page.run(READ) == before


def test_a_kernel_is_restarted_on_order_when_its_owner_consented_and_has_saved(
    kernel: Kernel, broker: RunningBroker
) -> None:
    lease = kernel.acquire()
    before = kernel.session()
    with kernel.front_end() as page:
        page.run("import gpubroker.simulated as sim; sim.burn(0.1, 100); answer = 42")
        page.run("import gpubroker; gpubroker.consent_restart()")
        until("the offer", lambda: leased(broker, lease, offers="restarted"))
        broker.client.call(routes.RELEASE, lease.id, ReleaseBody(kind="restarted"))
    after = kernel.session(other_than=before.id)
    gone = until("the end of the lease", lambda: leased(broker, lease, state="cleared"))
    assert gone.gave_back == "restarted"
    assert after.leases == ()
    with kernel.front_end() as page:
        shown = page.run("import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))")
        assert shown.splitlines()[-1] == "''"
        page.run("%gpu restore")
        assert page.run("print(answer)").strip() == "42"


def leased(
    broker: RunningBroker, lease: LeaseView, *, state: str | None = None, offers: str | None = None
) -> LeaseView | None:
    found = broker.client.call(routes.LEASE, lease.id)
    if state is not None and found.state != state:
        return None
    return found if offers is None or offers in found.give_backs else None
