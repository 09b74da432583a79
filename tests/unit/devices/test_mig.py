"""Names of slots are joined to one id, and a UUID that another instance took is another generation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpubroker.devices.mig import Generations, by_labels, canonical
from jupyter_gpubroker.devices.reader import GpuFound, Inventory, SlotFound

WHOLE = "GPU-0451a3f1-f345-8e4c-6592-e96c0feca949"
SPLIT = "GPU-53396cd5-a2d1-e155-fd36-f83518aa4935"
SMALL = "MIG-12aa7c89-bb90-59b7-ac2c-2e9cf0298925"
LARGE = "MIG-77aa7c89-bb90-59b7-ac2c-2e9cf0298925"
SHARED = "MIG-88aa7c89-bb90-59b7-ac2c-2e9cf0298925"

INVENTORY = Inventory(
    "nvml",
    "580.95.05",
    (
        GpuFound(WHOLE, 0, "", "A100", 81920, slots=(SlotFound(WHOLE, "gpu", 81920),)),
        GpuFound(
            SPLIT,
            2,
            "",
            "A100",
            81920,
            mig_enabled=True,
            mig_pending=True,
            slots=(
                SlotFound(SMALL, "mig", 9856, "1g.10gb", 12, 0, placement=0, position=3),
                SlotFound(LARGE, "mig", 40192, "2g.40gb", 2, 0, placement=4, position=5),
                SlotFound(SHARED, "mig", 40192, "2g.40gb", 2, 1, placement=4, position=6),
            ),
        ),
    ),
)


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        (WHOLE, WHOLE),
        (WHOLE.upper(), WHOLE),
        (WHOLE[:12], WHOLE),
        ("0", WHOLE),
        ("nvidia0", WHOLE),
        (SMALL, SMALL),
        (SMALL[:14], SMALL),
        (f"MIG-{SPLIT}/12/0", SMALL),  # drivers before 470
        (f"{SPLIT}/2/1", SHARED),
        ("2:3", SMALL),
        ("2-12", SMALL),
        ("2_12", SMALL),  # NVIDIA/dcgm-exporter#272
        ("nvidia2/gi12", SMALL),  # NVIDIA/dcgm-exporter#92
        (f" {SMALL}\n", SMALL),
        # Two compute instances share the GPU instance; a GPU with instances is no slot itself.
        ("2_2", None),
        (SPLIT, None),
        ("2", None),
        ("0:0", None),
        ("MIG-", None),
        ("GPU-", None),
        ("", None),
        ("all", None),
    ],
)
def test_a_name_in_any_form_means_one_slot_or_none(name: str, slot: str | None) -> None:
    assert canonical(name, INVENTORY) == slot


@pytest.mark.parametrize(
    ("labels", "slots"),
    [
        ({"gpu": "0", "UUID": WHOLE}, (WHOLE,)),
        ({"UUID": SPLIT, "GPU_I_ID": "12", "GPU_I_PROFILE": "1g.10gb"}, (SMALL,)),
        ({"uuid": SPLIT.lower(), "gpu_i_id": "12"}, (SMALL,)),  # NVIDIA/dcgm-exporter#577
        ({"UUID": SPLIT, "GPU_I_ID": "2"}, (LARGE, SHARED)),
        ({"UUID": SPLIT}, ()),
        ({"gpu": "0"}, ()),
        ({"UUID": WHOLE, "GPU_I_ID": "1"}, ()),
    ],
)
def test_a_sample_belongs_to_the_slots_that_its_labels_name(
    labels: dict[str, str], slots: tuple[str, ...]
) -> None:
    assert by_labels(labels, INVENTORY) == slots


def generations(inventory: Inventory) -> list[int]:
    return [slot.generation for gpu in inventory.gpus for slot in gpu.slots]


def with_split(**changes: object) -> Inventory:
    split = replace(INVENTORY.gpus[1], **changes)  # type: ignore[arg-type]
    return replace(INVENTORY, gpus=(INVENTORY.gpus[0], split))


def test_an_instance_that_stays_keeps_its_generation() -> None:
    known = Generations()
    assert generations(known.mark(INVENTORY)) == generations(known.mark(INVENTORY)) == [0, 0, 0, 0]


def test_an_instance_that_was_gone_is_another_when_it_is_back() -> None:
    known = Generations()
    known.mark(INVENTORY)
    known.mark(with_split(slots=INVENTORY.gpus[1].slots[:1]))
    assert generations(known.mark(INVENTORY)) == [0, 0, 1, 1]
    assert generations(known.mark(INVENTORY)) == [0, 0, 1, 1]


def test_a_uuid_on_another_place_is_another_instance() -> None:
    known = Generations()
    known.mark(INVENTORY)
    small, *others = INVENTORY.gpus[1].slots
    moved = with_split(slots=(replace(small, placement=1), *others))
    assert generations(known.mark(moved)) == [0, 1, 0, 0]


@pytest.mark.parametrize("state", ["lost", "unavailable"])
def test_a_gpu_that_tells_nothing_takes_no_generation(state: str) -> None:
    known = Generations()
    known.mark(INVENTORY)
    known.mark(with_split(state=state, slots=()))
    assert generations(known.mark(INVENTORY)) == [0, 0, 0, 0]


def test_a_driver_that_does_not_answer_takes_no_generation() -> None:
    known = Generations()
    known.mark(INVENTORY)
    known.mark(Inventory("nvml", None, (), ("nvmlInit: DriverNotLoaded",)))
    assert generations(known.mark(INVENTORY)) == [0, 0, 0, 0]
