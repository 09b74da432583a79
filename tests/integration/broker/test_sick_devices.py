"""Real broker, agent and probe: what is wrong with a device is seen, told, and costs nobody else anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.devices.simulated_faults import FAULTS
from jupyter_gpubroker.wire.bodies import ReleaseBody
from jupyter_gpubroker.wire.views import LeaseView
from tests.support.broker import Holder, RunningBroker, running_broker

Damage = Callable[..., None]


@pytest.fixture
def broker(folders: Any) -> Iterator[RunningBroker]:
    with running_broker("2xH200") as started:
        yield started


@pytest.fixture
def damage(broker: RunningBroker) -> Damage:
    """Say what is wrong with the simulated devices from now on."""

    def write(**faults: Any) -> None:
        path = broker.places.simulated / FAULTS
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(faults))
        temporary.replace(path)

    return write


def watched(broker: RunningBroker, lease: LeaseView, is_so: Callable[[LeaseView], bool]) -> None:
    for view in broker.client.watch(routes.LEASE, lease.id):
        if is_so(view):
            return


def test_a_gpu_that_must_be_reset_leaves_the_pool_and_its_holder_is_told(broker, damage):
    with Holder(broker) as holder, Holder(broker) as other:
        lease = holder.acquire()
        (sick,) = lease.slots
        damage(recovery_actions={sick: "gpu_reset"})
        watched(broker, lease, lambda view: "nobody new is let on it" in view.sentence)
        assert broker.client.call(routes.LEASE, lease.id).state == "active"
        assert other.acquire().slots != lease.slots
        broker.client.call(routes.RELEASE, lease.id, ReleaseBody(kind="empty", done=True))
        assert holder.ask().state == "waiting"


def test_a_programs_own_error_is_told_to_its_holder_and_the_gpu_stays(broker, damage):
    with Holder(broker) as holder:
        lease = holder.acquire()
        (slot,) = lease.slots
        damage(xids=[{"number": 1, "gpu": slot, "code": 31}])
        watched(broker, lease, lambda view: "Xid 31" in view.sentence)
        gpu = next(gpu for gpu in broker.client.call(routes.GPUS).gpus if gpu.uuid == slot)
        assert (gpu.state, gpu.slots[0].state) == ("ok", "leased")


def test_a_lost_gpu_costs_the_others_nothing(broker, damage):
    gpus = broker.client.call(routes.GPUS).gpus
    damage(states={gpus[0].uuid: "lost"})
    for view in broker.client.watch(routes.GPUS):
        if view.gpus[0].state == "lost":
            break
    with Holder(broker) as holder:
        assert holder.acquire().slots == (gpus[1].uuid,)
