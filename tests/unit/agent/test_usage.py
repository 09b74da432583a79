"""Whether the holder worked on the device, from what the counters tell."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.agent.usage import is_busy
from jupyter_gpubroker.core.events import ProcessOnSlot, ProcessOwner
from jupyter_gpubroker.devices.reader import ProcessReading, SlotReading

OURS, OTHER = 1, 2
HELD = frozenset({"kernel"})


def answer(
    device: int | None,
    *processes: tuple[int, int | None],
    holder_ids: frozenset[str] = HELD,
    listed: bool = True,
) -> bool | None:
    """`processes` are (pid, own percentage)."""
    readings = tuple(ProcessReading(pid, "compute", None, percent) for pid, percent in processes)
    reading = SlotReading("GPU-1", 0, device, readings if listed else None)
    owners = {
        OURS: ProcessOnSlot(OURS, ProcessOwner.SESSION, "kernel"),
        OTHER: ProcessOnSlot(OTHER, ProcessOwner.FOREIGN),
        3: ProcessOnSlot(3, ProcessOwner.UNMAPPED),
    }
    attributed = tuple(owners[pid] for pid, _ in processes)
    return is_busy(reading, attributed if listed else None, holder_ids)


@pytest.mark.parametrize(
    ("device", "processes", "expected"),
    [
        # Alone: the device's counter covers the whole window.
        (50, [(OURS, 0)], True),
        (0, [(OURS, 0)], False),
        (None, [(OURS, 30)], True),
        (None, [(OURS, None)], None),
        # With another's process: one's own share, else anybody's.
        (90, [(OURS, 0), (OTHER, 90)], False),
        (90, [(OURS, 10), (OTHER, 80)], True),
        (90, [(OURS, None), (OTHER, None)], True),
        (0, [(OURS, None), (OTHER, None)], False),
        (None, [(OURS, None), (OTHER, 3)], None),
        # Not there: it does not work there, whatever the counter says.
        (90, [(OTHER, 90)], False),
        (90, [], False),
        (None, [], False),
        # Somebody is there who may be anybody.
        (90, [(3, None)], True),
        (None, [(3, None)], None),
    ],
)
def test_own_use_counts_before_anybodys(device, processes, expected):
    assert answer(device, *processes) is expected


@pytest.mark.parametrize(("device", "expected"), [(5, True), (0, False), (None, None)])
def test_without_a_list_or_a_holder_the_device_tells(device, expected):
    assert answer(device, listed=False) is expected
    assert answer(device, (OTHER, 5), holder_ids=frozenset()) is expected
