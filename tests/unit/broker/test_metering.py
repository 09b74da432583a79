"""GPU time is the sum of moments, by person and by the hour of the wall clock."""

from __future__ import annotations

from jupyter_gpubroker.broker.metering import HOUR_S, Meter
from jupyter_gpubroker.core.model import Millis
from jupyter_gpubroker.store import UsageRow
from tests.support.core_world import World, whole


def test_time_is_added_up_from_look_to_look_and_taken_once() -> None:
    world = World().devices(whole(0))
    world.holds("a", "ada")
    meter = Meter()
    for at_ms in (0, 5_000, 12_000):
        meter.look(world.state, Millis(at_ms), 10 * HOUR_S)
    (row,) = meter.take()
    assert (row.hour, row.owner, row.held) == (10, "ada", 12_000 * 1_000)
    assert meter.take() == []


def test_each_hour_has_a_row_of_its_own() -> None:
    world = World().devices(whole(0))
    world.holds("a", "ada")
    meter = Meter()
    for at_ms, wall_s in ((0, 3_599), (1_000, 3_599), (3_000, 3_601)):
        meter.look(world.state, Millis(at_ms), wall_s)
    assert [(row.hour, row.held) for row in meter.take()] == [(0, 1_000_000), (1, 2_000_000)]


def test_who_is_known_by_uid_alone_gets_a_name(monkeypatch) -> None:
    world = World().devices(whole(0))
    world.session("s", "uid:0")
    world.uses("s", "GPU-0", busy=True)
    world.look()
    meter = Meter()
    meter.look(world.state, Millis(0), 0)
    meter.look(world.state, Millis(1), 0)
    assert list(meter.take()) == [UsageRow(0, "root", held=1_000, productive=1_000, outside=1_000)]
