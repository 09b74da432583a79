"""Which brokers satisfy a wish for simulated GPUs: never one that would be simulated over a real device."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from jupyter_gpubroker.client.places import Places
from jupyter_gpubroker.client.simulation import contradicts, difference
from jupyter_gpubroker.wire.views import HealthView, ReasonView

NO_GPU = ReasonView("no_gpu", {}, "There is none.", "No hay.")
BROKEN = ReasonView("driver_unavailable", {}, "It is broken.", "Está roto.")


def health(simulates: str = "", problem: ReasonView | None = None) -> HealthView:
    return HealthView(
        status="ok",
        version="0",
        api=1,
        scope="user",
        mode="enforce",
        incarnation="0",
        pid=1,
        ready=True,
        simulated=bool(simulates),
        uptime_ms=0,
        problem=problem,
        simulates=simulates,
    )


@pytest.mark.parametrize(
    ("wish", "there", "is_other"),
    [
        ("auto:2xH200", health("2xH200"), False),
        ("2xH200", health("2xH200"), False),
        ("auto:2xH200", health("1xA100"), True),
        ("auto:2xH200", health(problem=NO_GPU), True),
        ("auto:2xH200", health(), False),  # a real GPU
        ("auto:2xH200", health(problem=BROKEN), False),  # a broken driver is not simulated over
        ("2xH200", health(), True),
        ("", health("2xH200"), True),
        ("", health(problem=NO_GPU), False),
    ],
)
def test_a_wish_is_compared_with_what_is_there(
    wish: str, there: HealthView, is_other: bool
) -> None:
    assert contradicts(there, wish) == is_other
    told = difference(there, {"GPUBROKER_SIMULATE": wish})
    assert (told is not None) == is_other


def test_of_a_broker_that_has_not_looked_yet_nothing_is_said() -> None:
    assert not contradicts(replace(health(), ready=False), "2xH200")


def test_who_wishes_nothing_is_content_with_everything() -> None:
    assert difference(health("2xH200"), {}) is None


def test_what_was_simulated_is_remembered_for_machines_without_a_device_alone(folders) -> None:
    places = Places.find()
    places.prepare()
    assert places.remembered_simulation() == ""
    places.remember_simulation("2xH200")
    assert places.remembered_simulation() == "auto:2xH200"
    places.remember_simulation("auto:1xA100")
    assert places.remembered_simulation() == "auto:1xA100"
    places.remember_simulation("")
    assert places.remembered_simulation() == ""
