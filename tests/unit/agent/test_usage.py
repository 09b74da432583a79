"""Whether the holder worked on the device, from what the counters tell."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.agent.usage import Use, use_of
from jupyter_gpubroker.core.events import ProcessOnSlot, ProcessOwner
from jupyter_gpubroker.devices.reader import SlotReading

OURS, OTHER = 1, 2
HELD = frozenset({"kernel"})


def answer(
    device: int | None,
    *processes: tuple[int, int | None],
    holder_ids: frozenset[str] = HELD,
    listed: bool = True,
) -> bool | None:
    """`processes` are (pid, own percentage)."""
    reading = SlotReading("GPU-1", 0, device)
    owners = {
        OURS: (ProcessOwner.SESSION, "kernel"),
        OTHER: (ProcessOwner.FOREIGN, None),
        3: (ProcessOwner.UNMAPPED, None),
    }
    attributed = tuple(
        ProcessOnSlot(pid, *owners[pid], computes=None if percent is None else percent > 0)
        for pid, percent in processes
    )
    return use_of(reading, attributed if listed else None, holder_ids).busy


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
        # Nobody is listed: who draws is not, nor are others in a container.
        (90, [], True),
        (0, [], False),
        (None, [], None),
        # Nobody did what the device counted: the shares are missing.
        (90, [(OURS, 0), (OTHER, 0)], None),
        (0, [(OURS, 0), (OTHER, 0)], False),
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


def use(reading: SlotReading, *owned_by: ProcessOwner) -> Use:
    processes = [
        ProcessOnSlot(pid, owner, "kernel" if owner is ProcessOwner.SESSION else None)
        for pid, owner in enumerate(owned_by)
    ]
    return use_of(reading, processes, HELD)


def test_a_slice_is_judged_by_its_engines_over_the_time_they_cover():
    reading = SlotReading("MIG-1", engine_percent=0, sm_percent=0, window_ms=900)
    assert use(reading, ProcessOwner.SESSION) == Use(False, "engines", 900)
    reading = SlotReading("MIG-1", engine_percent=1, sm_percent=0, window_ms=900)
    assert use(reading, ProcessOwner.SESSION) == Use(True, "engines", 900)


def test_it_is_told_where_a_counter_of_all_stands_in_for_the_holders_own():
    reading = SlotReading("GPU-1", utilisation_percent=90, window_ms=1000)
    assert use(reading, ProcessOwner.SESSION) == Use(True, "utilisation", 1000)
    assert use(reading, ProcessOwner.SESSION, ProcessOwner.FOREIGN) == Use(True, "device", 1000)
    assert use(reading) == Use(True, "device", 1000)
    assert use(reading, ProcessOwner.FOREIGN) == Use(False, "nobody")


def test_without_any_counter_nothing_is_known():
    """dask/distributed#8739: a number that is missing is never 0."""
    assert use(SlotReading("MIG-1"), ProcessOwner.SESSION) == Use(None)
