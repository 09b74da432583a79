"""Simulated GPUs are told from real ones, and are gone when they are simulated no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpubroker.core.events import InventoryReported
from jupyter_gpubroker.core.model import RequestState
from jupyter_gpubroker.core.place import describe, is_forgotten
from jupyter_gpubroker.errors import Refused
from tests.support.core_world import NODE, OnSlot, World, inventory, whole


def simulated(*numbers: int) -> InventoryReported:
    event = inventory(*map(whole, numbers))
    return InventoryReported(
        NODE,
        tuple(replace(gpu, simulated=True) for gpu in event.gpus),
        tuple(replace(slot, simulated=True) for slot in event.slots),
    )


def test_what_is_simulated_says_so_wherever_it_is_named() -> None:
    world = World()
    world.do(simulated(0, 1))
    assert describe(world.state.slots.values()) == "2 x NVIDIA H200 (140 GiB, simulated)"


def test_a_gpu_that_is_simulated_no_more_is_not_waited_for() -> None:
    world = World()
    world.session("a")
    world.do(simulated(0))
    world.do(inventory())
    assert all(map(is_forgotten, world.state.slots.values()))
    with pytest.raises(Refused) as refused:
        world.asks("a")
    assert refused.value.reason.code == "no_gpu"


def test_whoever_waits_is_refused_when_the_simulation_ends() -> None:
    world = World()
    world.session("a")
    request_id = world.asks("a")  # nobody has looked yet
    world.do(inventory())
    assert world.request(request_id).state is RequestState.REFUSED


def test_the_epoch_of_a_gpu_goes_on_when_it_is_simulated_again() -> None:
    world = World()
    world.session("a")
    world.do(simulated(0))
    world.shown["GPU-0"] = OnSlot()
    world.look()
    first = world.lease(world.asks("a"))
    world.releases(first.id)
    world.look()
    assert set(world.state.slots) == {"GPU-0"}
    world.do(inventory())
    world.do(simulated(0))
    world.look()
    assert [hold.epoch for hold in first.holds] == [1]
    world.session("b")
    again = world.lease(world.asks("b", "again"))
    assert [hold.epoch for hold in again.holds] == [2]


def test_what_is_held_outlives_the_simulation_until_it_is_let_go() -> None:
    world = World()
    world.session("a")
    world.do(simulated(0))
    world.shown["GPU-0"] = OnSlot()
    world.look()
    lease_id = world.asks("a")
    world.applies(lease_id)
    world.do(simulated(1))
    assert world.lease(lease_id).cause is not None
    assert set(world.state.slots) == {"GPU-0", "GPU-1"}
