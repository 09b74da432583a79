"""Servers in a notebook, and devices that are busy without doing anything: verdicts and limits of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_gpubroker.core import giveback
from jupyter_gpubroker.core.events import HostUse, ProcessOwner
from jupyter_gpubroker.core.idle import reclaimable_ms
from jupyter_gpubroker.core.model import Activity, Verdict
from jupyter_gpubroker.core.rules import GENTLE
from tests.support.core_world import MINUTE, SECOND, World
from tests.unit.core.test_cases_idle import HOUR, IDLE, RUNNING, Case, begun


def serving(world: World, *, listens: bool) -> None:
    """Three requests, minutes apart, with nobody executing anything."""
    host = HostUse(processes=3, listens=listens)
    for _ in range(3):
        world.uses("k", "GPU-0", busy=True)
        world.look()
        world.uses("k", "GPU-0", busy=False, host=host)
        world.wait(5 * MINUTE)


@pytest.mark.parametrize("activity", [IDLE, RUNNING])
def test_a_server_between_requests_has_limits_of_its_own(activity: Activity) -> None:
    world, lease_id = begun(Case("", activity, Verdict.SERVING, 0, taken=False))
    serving(world, listens=True)
    lease = world.lease(lease_id)
    assert lease.verdict is Verdict.SERVING
    from_ms = reclaimable_ms(world.state, lease)
    assert from_ms is not None
    assert from_ms - world.now == GENTLE.serving_ms - 5 * MINUTE + 9 * SECOND
    world.says("k", RUNNING if activity is IDLE else IDLE)
    assert world.lease(lease_id).verdict is not Verdict.SERVING


def test_bursts_without_a_listener_are_no_service_and_a_listener_without_bursts_neither() -> None:
    world, lease_id = begun(Case("", IDLE, Verdict.IDLE, 0, taken=False))
    serving(world, listens=False)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    world.uses("k", "GPU-0", busy=False, host=HostUse(3, listens=True))
    world.says("k", RUNNING)
    world.says("k", IDLE)
    world.wait(5 * MINUTE)
    assert world.lease(lease_id).verdict is Verdict.IDLE


@pytest.mark.parametrize(
    ("shown", "verdict"),
    [
        ({"utilisation_percent": 100, "power_above_idle_mw": 4_000}, Verdict.SUSPECT),
        ({"utilisation_percent": 100, "sm_percent": 1, "dram_percent": 0}, Verdict.SUSPECT),
        ({"utilisation_percent": 100, "sm_percent": 1, "dram_percent": 40}, Verdict.ACTIVE),
        ({"utilisation_percent": 100, "sm_percent": 1, "power_above_idle_mw": 90_000}, Verdict.ACTIVE),
        ({"utilisation_percent": 20, "sm_percent": 1, "power_above_idle_mw": 0}, Verdict.ACTIVE),
        ({"utilisation_percent": 100}, Verdict.ACTIVE),
    ],
)  # fmt: skip
def test_a_device_that_spins_at_the_power_of_an_idle_one_is_told_of_and_never_taken(
    shown: dict[str, Any], verdict: Verdict
) -> None:
    """cupy/cupy#3557, Theano/libgpuarray#387"""
    world, lease_id = begun(
        Case("", RUNNING, verdict, 0, taken=False, shown={"busy": True, **shown})
    )
    world.wait(5 * HOUR, MINUTE)
    lease = world.lease(lease_id)
    assert lease.verdict is verdict
    assert reclaimable_ms(world.state, lease) is None
    assert lease.notices == 0


def test_another_tenants_use_of_the_device_is_not_the_holders() -> None:
    """The display or another tenant works, the holder's own counters stand still."""
    world, lease_id = begun(Case("", IDLE, Verdict.IDLE, 0, taken=True))
    shown = world.shown["GPU-0"]
    assert shown.processes is not None
    display = replace(
        shown.processes[0], pid=1, owned_by=ProcessOwner.FOREIGN, holder_id=None, is_exempt=True
    )
    shown.processes = (*shown.processes, display)
    world.wait(GENTLE.idle_ms + MINUTE, MINUTE)
    assert world.lease(lease_id).verdict is Verdict.IDLE
    assert world.lease(lease_id).notice is not None
    assert giveback.kinds_now(world.state, world.lease(lease_id), world.now)
