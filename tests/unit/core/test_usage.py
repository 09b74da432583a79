"""What counts as held, at work, idle, wanted and outside, at one moment."""

from __future__ import annotations

from jupyter_gpubroker.core.events import ModeSet
from jupyter_gpubroker.core.model import Mode, Owner, SlotSpec
from jupyter_gpubroker.core.usage import Share, shares
from tests.support.core_world import MINUTE, World, slice_of, whole

ADA, BOB = Owner("ada"), Owner("bob")


def test_who_works_is_productive_and_who_does_not_is_idle() -> None:
    world = World().devices(whole(0), whole(1))
    world.holds("a", "ada")
    world.holds("b", "bob")
    world.uses("a", "GPU-0", busy=True)
    world.wait(MINUTE)
    found = shares(world.state, world.now)
    assert found[ADA] == Share(held=1_000, productive=1_000)
    assert found[BOB] == Share(held=1_000, idle=1_000)


def test_idle_is_wanted_only_by_who_could_use_it() -> None:
    world = World().devices(whole(0))
    world.holds("a", "ada")
    world.wait(MINUTE)
    world.session("next", "bob")
    world.asks("next")
    assert shares(world.state, world.now)[ADA] == Share(held=1_000, idle=1_000, wanted=1_000)


def test_what_cannot_be_seen_is_held_and_nothing_else() -> None:
    world = World().devices(whole(0))
    world.session("a", "ada")
    world.asks("a")
    assert shares(world.state, world.now)[ADA] == Share(held=1_000)


def test_a_slice_counts_by_its_share_of_the_gpu() -> None:
    world = World().devices(slice_of(0, "a", "3g.71gb", 71_885))
    world.holds("a", "ada", SlotSpec(profile="3g.71gb"))
    assert shares(world.state, world.now)[ADA].held == 500


def test_a_use_without_a_lease_is_outside() -> None:
    world = World().devices(whole(0))
    world.session("a", "ada")
    world.uses("a", "GPU-0", busy=True)
    world.look()
    assert shares(world.state, world.now)[ADA] == Share(held=1_000, productive=1_000, outside=1_000)


def test_where_rules_are_not_enforced_what_they_would_have_freed_is_spared() -> None:
    world = World().devices(whole(0))
    world.do(ModeSet(Owner("root"), Mode.OBSERVE))
    world.holds("a", "ada")
    world.session("next", "bob")
    world.asks("next")
    world.wait(19 * MINUTE)  # never used: 15 min, and a notice of 5 min
    assert shares(world.state, world.now)[ADA].spared == 0
    world.wait(2 * MINUTE)
    assert shares(world.state, world.now)[ADA].spared == 1_000


def test_who_stands_idle_without_a_lease_is_spared_as_well() -> None:
    world = World().devices(whole(0))
    world.do(ModeSet(Owner("root"), Mode.OBSERVE))
    world.session("a", "ada")
    world.uses("a", "GPU-0", busy=False)
    world.look()
    world.session("next", "bob")
    world.asks("next")
    world.wait(34 * MINUTE)  # idle: 30 min, and a notice of 5 min
    assert shares(world.state, world.now)[ADA].spared == 0
    world.wait(2 * MINUTE)
    assert shares(world.state, world.now)[ADA] == Share(
        held=1_000, idle=1_000, wanted=1_000, outside=1_000, spared=1_000
    )
