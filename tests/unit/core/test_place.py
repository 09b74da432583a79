"""Where a request fits, and what is refused with what there is."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.core.model import MiB, Reason, SlotId, SlotSpec
from jupyter_gpubroker.core.place import describe, never_served, serves
from jupyter_gpubroker.core.pool import Pool
from jupyter_gpubroker.errors import Refused
from tests.support.core_world import World, slice_of, whole

WHOLE = (whole(0), whole(1), whole(2, "NVIDIA A100", 81_920))
SLICES = (slice_of(3, "a", "3g.40gb", 40_448), slice_of(3, "b", "1g.10gb", 9_856))


def world() -> World:
    return World().devices(*WHOLE, *SLICES)


@pytest.mark.parametrize(
    ("spec", "fitting"),
    [
        (SlotSpec(), {"GPU-0", "GPU-1", "GPU-2"}),
        (SlotSpec(model="h200"), {"GPU-0", "GPU-1"}),
        (SlotSpec(model="NVIDIA A100"), {"GPU-2"}),
        (SlotSpec(profile="3g.40gb"), {"MIG-3-a"}),
        (SlotSpec(memory_mib_min=MiB(20_000)), {"GPU-0", "GPU-1", "GPU-2", "MIG-3-a"}),
        (SlotSpec(memory_mib_min=MiB(100_000)), {"GPU-0", "GPU-1"}),
        (SlotSpec(2, memory_mib_min=MiB(9_000)), {"GPU-0", "GPU-1", "GPU-2"}),
    ],
)
def test_which_slots_could_serve(spec: SlotSpec, fitting: set[str]) -> None:
    assert {slot.id for slot in world().state.slots.values() if serves(slot, spec)} == fitting


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        (SlotSpec(memory_mib_min=MiB(5_000)), ["MIG-3-b"]),
        (SlotSpec(memory_mib_min=MiB(10_000)), ["MIG-3-a"]),
        (SlotSpec(memory_mib_min=MiB(41_000)), ["GPU-2"]),
        (SlotSpec(), ["GPU-2"]),
        (SlotSpec(model="H200"), ["GPU-0"]),
        (SlotSpec(2, model="H200"), ["GPU-0", "GPU-1"]),
        (SlotSpec(4), None),
    ],
)
def test_the_smallest_that_serves_is_chosen(spec: SlotSpec, chosen: list[str] | None) -> None:
    found = Pool(world().state.slots.values()).best(spec)
    assert (None if found is None else [slot.id for slot in found]) == chosen


def test_among_equals_the_one_it_had_before_is_preferred() -> None:
    found = Pool(world().state.slots.values()).best(SlotSpec(model="H200"), [SlotId("GPU-1")])
    assert found is not None
    assert found[0].id == "GPU-1"


def test_a_kernel_gets_the_gpu_back_that_it_had() -> None:
    played = World().devices(whole(0), whole(1))
    played.holds("other")
    lease_id = played.holds("k")
    played.releases(lease_id, done=True)
    played.ends("other")
    played.look()
    again = played.asks("k", "again")
    assert played.lease(again).home == ("GPU-1",)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (SlotSpec(4), "too_many_slots"),
        (SlotSpec(3, model="H200"), "too_many_slots"),
        (SlotSpec(profile="7g.80gb"), "unknown_profile"),
        (SlotSpec(model="B200"), "unknown_model"),
        (SlotSpec(memory_mib_min=MiB(200_000)), "too_much_memory"),
        (SlotSpec(2, profile="1g.10gb"), "several_slices"),
        (SlotSpec(0), "bad_count"),
        (SlotSpec(model="A100", profile="2g.20gb"), "unknown_profile"),
    ],
)
def test_what_can_never_be_is_refused_at_once_with_what_there_is(spec: SlotSpec, code: str) -> None:
    played = world()
    played.session("k")
    with pytest.raises(Refused) as refused:
        played.asks("k", spec=spec)
    assert refused.value.reason.code == code
    assert refused.value.status == 422
    if code not in ("several_slices", "bad_count"):
        assert "2 x NVIDIA H200 (140 GiB)" in str(refused.value.reason.get("available"))
    assert played.state.requests == {}


def test_where_all_is_sliced_a_whole_gpu_is_refused() -> None:
    played = World().devices(*SLICES)
    assert never_served(played.state, SlotSpec()) is not None


def test_where_there_is_no_gpu_a_request_is_refused_before_and_after_that_is_known() -> None:
    early = World()
    early.session("k")
    request_id = early.asks("k")
    early.devices()
    assert early.request(request_id).reason == Reason.of("no_gpu")
    with pytest.raises(Refused) as refused:
        early.asks("k", "again")
    assert refused.value.reason == Reason.of("no_gpu")


def test_a_gpu_that_is_lost_today_may_be_asked_for() -> None:
    played = World().devices(whole(0), whole(1))
    played.shown.pop("GPU-1")
    played.devices(whole(0))
    assert never_served(played.state, SlotSpec(2)) is None


def test_a_slice_that_was_partitioned_away_may_not() -> None:
    played = World().devices(*SLICES)
    played.devices(slice_of(3, "c", "7g.80gb", 80_000))
    assert never_served(played.state, SlotSpec(profile="3g.40gb")) is not None


def test_what_there_is_is_said_in_few_words() -> None:
    words = "2 x NVIDIA H200 (140 GiB), NVIDIA A100 (80 GiB), NVIDIA A100 3g.40gb (40 GiB), NVIDIA A100 1g.10gb (10 GiB)"
    assert describe(world().state.slots.values()) == words
