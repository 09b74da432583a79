"""Real broker, agent and probe: what is wrong with a device is seen, told, and costs nobody else anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.devices.simulated_faults import FAULTS
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


def test_a_lost_gpu_costs_the_others_nothing(broker, damage):
    gpus = broker.client.call(routes.GPUS).gpus
    damage(states={gpus[0].uuid: "lost"})
    for view in broker.client.watch(routes.GPUS):
        if view.gpus[0].state == "lost":
            break
    with Holder(broker) as holder:
        assert holder.acquire().slots == (gpus[1].uuid,)
