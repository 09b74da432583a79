"""The provisioner in the order in which a KernelManager calls it: what carries a lease on, what ends it, what does not."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from traitlets.config import LoggingConfigurable

from jupyter_gpubroker.client.places import Places
from jupyter_gpubroker.server import hosts
from jupyter_gpubroker.server.environment import KERNEL_PATH, Carried
from jupyter_gpubroker.server.hosts import Launched
from jupyter_gpubroker.server.provisioner import GPUBrokerProvisioner, carried_by
from jupyter_gpubroker.wire.views import SessionView
from tests.unit.server.double import lease_view, session_view

pytestmark = pytest.mark.asyncio

IPYKERNEL = (sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}")
SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")


class Kernels(LoggingConfigurable):
    """Stands for the server's MappingKernelManager."""


class RecordingHost:
    """What a server's link would be told."""

    def __init__(self) -> None:
        self.places = Places.find()
        self.server_id: str | None = "server"
        self.simulated: bool | None = None
        self.hides_devices = True
        self.told: list[tuple[str, str]] = []
        self.kernels: list[Launched] = []
        self.answer: SessionView | None = None
        self.known: SessionView | None = None

    def launched(self, kernel: Launched) -> None:
        self.told.append(("launched", kernel.session_id))
        self.kernels.append(kernel)

    async def restarting(self, session_id: str) -> SessionView | None:
        self.told.append(("restarting", session_id))
        return self.answer

    def seen(self, session_id: str) -> SessionView | None:
        return self.known if self.known and self.known.id == session_id else None

    async def ended(self, session_id: str) -> None:
        self.told.append(("ended", session_id))

    def given_up(self, session_id: str) -> None:
        self.told.append(("given_up", session_id))


class Kernel:
    """A provisioner with its manager, driven call by call."""

    def __init__(self, host: RecordingHost, folder: Path, argv: tuple[str, ...] = SLEEPER) -> None:
        self.host = host
        above = Kernels()
        hosts.register(above, host)
        spec = KernelSpec(argv=list(argv), display_name="Python 3", language="python")
        self.manager = AsyncKernelManager(
            connection_file=str(folder / "kernel-1.json"), parent=above
        )
        self.manager._kernel_spec = spec
        self.manager._launch_args = {}
        self.callbacks: list[tuple[Any, str]] = []
        object.__setattr__(self.manager, "add_restart_callback", self._add_restart_callback)
        self.provisioner = GPUBrokerProvisioner(
            kernel_id="1",
            kernel_spec=spec,
            parent=self.manager,
            log=logging.getLogger("provisioner"),
        )

    def _add_restart_callback(self, callback: Any, event: str) -> None:
        self.callbacks.append((callback, event))

    async def start(self, **env: str) -> dict[str, Any]:
        """One start; the arguments its process was started with."""
        arguments = await self.provisioner.pre_launch(env={"PATH": "/bin", **env})
        launched = dict(arguments)
        await self.provisioner.launch_kernel(launched.pop("cmd"), **launched)
        await self.provisioner.post_launch(**launched)
        return arguments

    async def die(self) -> None:
        assert self.provisioner.process is not None
        self.provisioner.process.kill()
        await self.provisioner.wait()


@pytest.fixture
def host() -> RecordingHost:
    return RecordingHost()


async def test_a_start_tells_who_runs_and_shows_no_gpu(host: RecordingHost, tmp_path: Path) -> None:
    kernel = Kernel(host, tmp_path)
    arguments = await kernel.start(JPY_SESSION_NAME="/home/u/work.ipynb", CUDA_VISIBLE_DEVICES="0")
    [launched] = host.kernels
    body = launched.body
    assert arguments["env"]["CUDA_VISIBLE_DEVICES"] == ""
    assert arguments["env"]["GPUBROKER_SESSION"] == launched.session_id
    assert (body.kind, body.name, body.kernel_id) == ("kernel", "/home/u/work.ipynb", "1")
    assert (body.pid, body.server_id, body.headless) == (kernel.provisioner.pid, "server", False)
    assert body.predecessor is None
    await kernel.die()


async def test_a_name_too_long_for_the_broker_is_cut(host: RecordingHost, tmp_path: Path) -> None:
    kernel = Kernel(host, tmp_path)
    await kernel.start(JPY_SESSION_NAME="x" * 5_000)
    assert len(host.kernels[0].body.name) == 1_024
    await kernel.die()


async def test_without_a_server_a_kernel_is_headless(host: RecordingHost, tmp_path: Path) -> None:
    host.server_id = None
    kernel = Kernel(host, tmp_path)
    await kernel.start()
    assert host.kernels[0].body.headless
    await kernel.die()


async def test_an_ipykernel_is_given_the_magic_and_others_are_not(
    host: RecordingHost, tmp_path: Path
) -> None:
    arguments = await Kernel(host, tmp_path, IPYKERNEL).provisioner.pre_launch(env={})
    assert arguments["cmd"][-1] == "--ext=gpubroker"
    assert arguments["env"]["PYTHONPATH"] == str(KERNEL_PATH)
    arguments = await Kernel(host, tmp_path).provisioner.pre_launch(env={})
    assert arguments["cmd"][-1] == SLEEPER[-1]
    assert "PYTHONPATH" not in arguments["env"]


async def test_a_requested_restart_carries_the_lease_on(
    host: RecordingHost, tmp_path: Path
) -> None:
    kernel = Kernel(host, tmp_path)
    await kernel.start()
    first = host.kernels[0].session_id
    host.answer = session_view(first, "1", lease_view("lease", visible_devices="GPU-7"))

    await kernel.provisioner.shutdown_requested(restart=True)
    await kernel.die()
    await kernel.provisioner.cleanup(restart=True)
    arguments = await kernel.start()

    assert arguments["env"]["CUDA_VISIBLE_DEVICES"] == "GPU-7"
    assert arguments["env"]["GPUBROKER_LEASE"] == "lease"
    second = host.kernels[1]
    assert second.session_id != first
    assert second.body.predecessor == first
    assert host.told == [
        ("launched", first),
        ("restarting", first),
        ("launched", second.session_id),
    ]
    await kernel.die()


async def test_a_crash_carries_nothing_on_but_names_the_predecessor(
    host: RecordingHost, tmp_path: Path
) -> None:
    kernel = Kernel(host, tmp_path)
    await kernel.start()
    first = host.kernels[0].session_id
    host.known = session_view(first, "1", lease_view("lease"))

    await kernel.provisioner.send_signal(2)
    await kernel.provisioner.kill(restart=False)
    await kernel.die()
    await kernel.provisioner.cleanup(restart=True)
    arguments = await kernel.start()

    assert arguments["env"]["CUDA_VISIBLE_DEVICES"] == ""
    assert "GPUBROKER_LEASE" not in arguments["env"]
    assert host.kernels[1].body.predecessor == first
    assert ("ended", first) not in host.told, "kill() is not final"
    await kernel.die()


async def test_an_announcement_counts_for_one_start_only(
    host: RecordingHost, tmp_path: Path
) -> None:
    kernel = Kernel(host, tmp_path)
    await kernel.start()
    host.answer = session_view("s", "1", lease_view("lease"))
    await kernel.provisioner.shutdown_requested(restart=True)
    for expected in ("GPU-1", ""):
        await kernel.die()
        await kernel.provisioner.cleanup(restart=True)
        arguments = await kernel.start()
        assert arguments["env"]["CUDA_VISIBLE_DEVICES"] == expected
    await kernel.die()


async def test_a_kernel_that_announced_its_own_restart_keeps_its_lease(
    host: RecordingHost, tmp_path: Path
) -> None:
    kernel = Kernel(host, tmp_path)
    await kernel.start()
    view = session_view(host.kernels[0].session_id, "1", lease_view("lease"), state="restarting")
    host.known = view
    await kernel.die()
    await kernel.provisioner.cleanup(restart=True)
    arguments = await kernel.start()
    assert arguments["env"]["GPUBROKER_LEASE"] == "lease"
    await kernel.die()


async def test_only_a_shutdown_for_good_ends_the_session_and_once(
    host: RecordingHost, tmp_path: Path
) -> None:
    kernel = Kernel(host, tmp_path)
    await kernel.start()
    first = host.kernels[0].session_id
    await kernel.provisioner.shutdown_requested(restart=False)
    await kernel.die()
    await kernel.provisioner.cleanup(restart=False)
    await kernel.provisioner.cleanup(restart=False)
    assert host.told == [("launched", first), ("ended", first)]


async def test_a_kernel_given_up_is_forgotten_though_no_cleanup_comes(
    host: RecordingHost, tmp_path: Path
) -> None:
    kernel = Kernel(host, tmp_path)
    await kernel.start()
    await kernel.die()
    await kernel.start()
    second = host.kernels[1].session_id
    [(callback, event)] = kernel.callbacks
    assert event == "dead"
    callback()
    assert host.told[-1] == ("given_up", second)
    await kernel.die()


@pytest.mark.parametrize("mark", ["GPUBROKER_JOB", "SLURM_JOB_ID"])
async def test_an_inherited_allocation_is_no_business_of_the_brokers(
    host: RecordingHost, tmp_path: Path, mark: str
) -> None:
    kernel = Kernel(host, tmp_path)
    arguments = await kernel.start(**{mark: "1", "CUDA_VISIBLE_DEVICES": "2"})
    assert arguments["env"]["CUDA_VISIBLE_DEVICES"] == "2"
    assert arguments["env"]["GPUBROKER_INHERITED"] == "1"
    await kernel.die()
    await kernel.provisioner.cleanup(restart=False)
    assert host.told == []


async def test_off_means_a_plain_provisioner_whose_kernels_can_say_so(
    host: RecordingHost, tmp_path: Path
) -> None:
    kernel = Kernel(host, tmp_path, IPYKERNEL)
    env = {"GPUBROKER": "off", "CUDA_VISIBLE_DEVICES": "2"}
    arguments = await kernel.provisioner.pre_launch(env=dict(env))
    assert arguments["env"] == {**env, "PYTHONPATH": str(KERNEL_PATH)}
    assert "--ext=gpubroker" in arguments["cmd"]
    assert host.told == []


async def test_off_by_a_mark_is_told_to_the_kernel(host: RecordingHost, tmp_path: Path) -> None:
    host.places.off_marker.parent.mkdir(parents=True, exist_ok=True)
    host.places.off_marker.touch()
    env = {"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}
    arguments = await Kernel(host, tmp_path).provisioner.pre_launch(env=dict(env))
    assert arguments["env"] == {**env, "GPUBROKER": "off"}


@pytest.mark.parametrize(
    ("simulated", "asked_for", "expected"),
    [(True, None, True), (False, "2xH200", False), (None, "2xH200", True), (None, None, False)],
)
async def test_kernels_are_told_where_simulated_gpus_are(
    host: RecordingHost,
    tmp_path: Path,
    simulated: bool | None,
    asked_for: str | None,
    expected: bool,
) -> None:
    host.simulated = simulated
    env = {"GPUBROKER_SIMULATE": asked_for} if asked_for else {}
    arguments = await Kernel(host, tmp_path).provisioner.pre_launch(env=env)
    assert ("GPUBROKER_SIMULATED_STATE" in arguments["env"]) is expected


async def test_the_simulated_gpus_of_a_configured_broker_lie_beside_its_socket(
    host: RecordingHost, tmp_path: Path
) -> None:
    host.places, host.simulated = Places.find(url="unix:///run/elsewhere/broker.sock"), True
    arguments = await Kernel(host, tmp_path).provisioner.pre_launch(env={})
    assert arguments["env"]["GPUBROKER_SIMULATED_STATE"] == "/run/elsewhere/simulated"


@pytest.mark.parametrize("state", ["draining", "parked", "cleared", "quarantined"])
async def test_a_lease_on_its_way_out_is_not_carried(state: str) -> None:
    assert carried_by(session_view("s", "1", lease_view("lease", state=state))) is None
    assert carried_by(session_view("s", "1")) is None
    assert carried_by(None) is None


async def test_all_slots_of_a_lease_are_carried() -> None:
    lease = lease_view("lease", state="granted", visible_devices="GPU-1,GPU-2")
    assert carried_by(session_view("s", "1", lease)) == Carried("lease", "GPU-1,GPU-2")


async def test_a_process_without_a_server_stands_alone(tmp_path: Path) -> None:
    manager = AsyncKernelManager(connection_file=str(tmp_path / "c.json"))
    host = hosts.host_of(manager, logging.getLogger("x"))
    assert isinstance(host, hosts.Standalone)
    assert host.server_id is None
    assert await host.restarting("0" * 32) is None, "nothing was told, so nothing is announced"
    await host.ended("0" * 32)
