"""CUDA_VISIBLE_DEVICES, as users write it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from gpubroker.environment import NAME, VisibleDevices, understand

LENT = ("GPU-aaaa-1", "GPU-bbbb-2")


@pytest.mark.parametrize("value", ["", " ", "-1", "none", "NoDevFiles"])
@pytest.mark.parametrize("lent", [(), LENT])
def test_some_values_hide_everything(value: str, lent: tuple[str, ...]) -> None:
    wish = understand(value, lent)
    assert (wish.value, wish.wants, wish.refusal) == ("", 0, None)


@pytest.mark.parametrize(
    ("value", "wants"), [("0", 1), ("0,1", 2), ("3", 1), ("GPU-ffff", 1), (" 0 , 1 ", 2)]
)
def test_without_a_lease_a_number_of_devices_is_asked_for(value: str, wants: int) -> None:
    assert understand(value, ()).wants == wants


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("0", "GPU-aaaa-1"),
        ("1", "GPU-bbbb-2"),
        ("1,0", "GPU-bbbb-2,GPU-aaaa-1"),
        ("GPU-bbbb", "GPU-bbbb-2"),
        ("GPU-aaaa-1,GPU-bbbb-2", "GPU-aaaa-1,GPU-bbbb-2"),
    ],
)
def test_with_a_lease_one_chooses_among_what_is_lent(value: str, shown: str) -> None:
    assert understand(value, LENT).value == shown


@pytest.mark.parametrize("value", ["2", "GPU-cccc", "0,7", "MIG-x"])
def test_what_is_not_lent_is_refused_with_a_sentence(value: str) -> None:
    refusal = understand(value, LENT).refusal
    assert refusal is not None
    assert "stays as it was" in refusal


@pytest.mark.parametrize("value", ["all", "0;1", "gpu0", "٠"])
def test_what_names_no_device_is_refused_with_a_sentence(value: str) -> None:
    refusal = understand(value, ()).refusal
    assert refusal is not None
    assert "%gpu request" in refusal


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[VisibleDevices]:
    monkeypatch.setenv(NAME, "")
    made = VisibleDevices(asks=asked.append, tells=told.append)
    asked.clear()
    told.clear()
    made.install()
    yield made
    made.uninstall()


asked: list[int] = []
told: list[str] = []


def test_a_process_that_holds_nothing_asks_and_stays_blind_until_granted(
    devices: VisibleDevices,
) -> None:
    os.environ[NAME] = "0,1"
    assert asked == [2]
    assert os.environ[NAME] == ""
    devices.show("GPU-1,GPU-2")
    assert os.environ[NAME] == "GPU-1,GPU-2"


def test_children_see_what_the_process_sees(devices: VisibleDevices) -> None:
    devices.show("GPU-1,GPU-2")
    os.environ[NAME] = "1"
    seen = subprocess.run(["sh", "-c", f"echo ${NAME}"], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "GPU-2"


def test_the_variable_cannot_be_made_to_vanish(devices: VisibleDevices) -> None:
    devices.show("GPU-1")
    os.environ[NAME] = ""
    assert devices.hidden_by_user
    del os.environ[NAME]
    assert os.environ[NAME] == "GPU-1"
    assert os.environ.pop(NAME) == "GPU-1"
    assert os.environ[NAME] == "GPU-1"
    before = dict(os.environ)
    os.environ.clear()
    assert dict(os.environ) == {NAME: "GPU-1"}
    os.environ.update(before)
    assert dict(os.environ) == before
    devices.hide()
    del os.environ[NAME]
    assert os.environ[NAME] == ""


def test_other_variables_are_none_of_our_business(devices: VisibleDevices) -> None:
    os.environ["GPUBROKER_TEST"] = "1"
    assert os.environ.pop("GPUBROKER_TEST") == "1"
    assert "GPUBROKER_TEST" not in os.environ
    with pytest.raises(TypeError):
        os.environ[NAME] = 1  # type: ignore[assignment]
    assert told == []
