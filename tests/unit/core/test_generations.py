"""An instance that came back under its old id is another one; a broker that starts anew counts from 0 again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpubroker.core.model import LeaseState, SlotSpec
from tests.support.core_world import World, slice_of

SLICE = slice_of(0, "a", "1g.5gb", 4_864)


@pytest.mark.parametrize(
    ("before", "now", "state"),
    [
        (0, 1, LeaseState.DRAINING),
        (1, 1, LeaseState.ACTIVE),
        (1, 0, LeaseState.ACTIVE),
    ],
    ids=["another instance", "the same", "the broker started anew"],
)
def test_a_lease_ends_with_its_instance_and_not_with_the_broker(before, now, state):
    world = World().devices(replace(SLICE, generation=before))
    lease_id = world.holds("kernel", spec=SlotSpec(profile="1g.5gb"))
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    world.devices(replace(SLICE, generation=now))
    lease = world.lease(lease_id)
    assert (LeaseState.DRAINING if lease.state is LeaseState.CLEARED else lease.state) is state
    assert world.slot(SLICE.id).generation == now
