"""Whoever asks for other GPUs than the running broker has gets a broker of that kind, or is told why not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jupyter_gpubroker.client import (
    BrokerClient,
    BrokerDown,
    BrokerError,
    Places,
    ensure_broker,
    routes,
)
from jupyter_gpubroker.client.simulation import difference
from jupyter_gpubroker.client.start import stop_broker
from jupyter_gpubroker.devices.simulated_faults import FAULTS, Faults
from jupyter_gpubroker.wire.bodies import StopBody
from jupyter_gpubroker.wire.views import HealthView
from tests.support.broker import Holder, running_broker


@pytest.fixture
def places(folders) -> Iterator[Places]:
    """Where clients start brokers; the last of them is ended here."""
    found = Places.find()
    yield found
    stop_broker(found.url, force=True)


def ensured(places: Places, **environ: str) -> HealthView:
    """The broker that a client with these variables gets."""
    with BrokerClient(ensure_broker(places, environ={**os.environ, **environ})) as client:
        for health in client.watch(routes.HEALTH, wait_s=5):
            if health.ready:
                return health
    raise AssertionError("a watch never ends")


@pytest.mark.skipif(any(Path("/dev").glob("nvidia*")), reason="this machine has an NVIDIA device")
def test_who_comes_first_does_not_decide_what_is_simulated(places: Places) -> None:
    first = ensured(places)
    assert first.problem is not None
    assert first.problem.code == "no_gpu"
    lab = ensured(places, GPUBROKER_SIMULATE="auto:1xH200")
    assert lab.simulates == "1xH200"
    assert lab.pid != first.pid
    stop_broker(places.url)
    later = ensured(places)  # says nothing, and gets what there was
    assert later.simulates == "1xH200"


def test_a_broker_in_use_stays_and_the_difference_is_told(folders) -> None:
    with running_broker("1xH200") as broker, Holder(broker) as holder:
        holder.acquire()
        environ = {**os.environ, "GPUBROKER_SIMULATE": "auto:2xL4"}
        ensure_broker(broker.places, environ=environ)
        health = broker.client.call(routes.HEALTH)
        assert health.pid == broker.process.pid
        told = difference(health, environ)
        assert told is not None
        assert "simulated GPUs (2xL4)" in told
        assert "the broker that runs simulates 1xH200" in told


def test_a_broker_that_a_kernel_works_with_stays_although_nothing_is_held(folders) -> None:
    with running_broker("1xH200") as broker, Holder(broker):
        ensure_broker(broker.places, environ={**os.environ, "GPUBROKER_SIMULATE": "2xA100"})
        assert broker.client.call(routes.HEALTH).pid == broker.process.pid


def test_a_broker_whose_gpus_are_all_lost_is_the_one_wished_for(folders) -> None:
    with running_broker("1xH200") as broker:
        (gpu,) = broker.client.call(routes.GPUS).gpus
        (broker.places.simulated / FAULTS).write_bytes(
            msgspec.json.encode(Faults(states={gpu.uuid: "lost"}))
        )
        for view in broker.client.watch(routes.GPUS, wait_s=5):
            if view.gpus[0].state == "lost":
                break
        health = ensured(broker.places, GPUBROKER_SIMULATE="1xH200")
        assert (health.pid, health.simulates) == (broker.process.pid, "1xH200")


def test_a_process_brings_its_wish_forward_once_so_that_two_cannot_fight(folders) -> None:
    with running_broker("1xH200") as broker:
        wish = {**os.environ, "GPUBROKER_SIMULATE": "1xA100"}
        with Holder(broker) as holder:
            lease = holder.acquire()
            ensure_broker(broker.places, environ=wish)
        for view in broker.client.watch(routes.LEASE, lease.id, wait_s=5):
            if view.state == "cleared":
                break
        ensure_broker(broker.places, environ=wish)
        assert broker.client.call(routes.HEALTH).pid == broker.process.pid


def test_stop_is_refused_while_somebody_holds_a_gpu_unless_it_is_forced(folders) -> None:
    with running_broker("1xH200") as broker, Holder(broker) as holder:
        lease = holder.acquire()
        with pytest.raises(
            BrokerError, match=r"in use \(leases: 1, waiting requests: 0"
        ) as refused:
            broker.client.call(routes.STOP, body=StopBody(force=False))
        assert refused.value.status == 409
        assert stop_broker(broker.url, force=True).pid == broker.process.pid
        assert broker.process.wait(60) == 0
        broker.start()
        assert broker.client.call(routes.LEASE, lease.id).state == "active", "it lives on"


def test_a_broker_that_was_stopped_by_a_signal_is_named_within_seconds(folders) -> None:
    with running_broker("1xH200") as broker:
        broker.process.send_signal(signal.SIGSTOP)
        began_s = time.monotonic()
        with pytest.raises(BrokerDown, match=f"kill -CONT {broker.process.pid}"):
            ensure_broker(broker.places)
        assert time.monotonic() - began_s < 8
        broker.process.send_signal(signal.SIGCONT)
