"""What is told of the GPUs' condition: news only, and errors with the slice they concern."""

from __future__ import annotations

from jupyter_gpubroker.agent.condition import Condition, power_above_idle_mw
from jupyter_gpubroker.core.events import GpuFault, GpuSeen
from jupyter_gpubroker.core.model import GpuId, SlotId
from jupyter_gpubroker.devices.reader import GpuFound, GpuReading, Inventory, SlotFound, Xid

SLICED = GpuFound(
    "GPU-1", 0, "", "A100", None, slots=(SlotFound("MIG-1", "mig", None, "1g.5gb", gi_id=7),)
)
WHOLE = GpuFound("GPU-2", 1, "", "H200", None, slots=(SlotFound("GPU-2", "gpu", None),))
INVENTORY = Inventory("nvml", "1", (SLICED, WHOLE))


def seen(*faults: GpuFault, action: str | None = "none") -> tuple[GpuSeen, ...]:
    return (GpuSeen(GpuId("GPU-1"), action, faults),)


def test_a_gpu_is_told_once_and_again_when_the_driver_asks_for_something_else():
    condition = Condition()

    def news(action: str | None) -> tuple[GpuSeen, ...]:
        return condition.news([GpuReading("GPU-1", recovery_action=action)], INVENTORY)

    assert [news("none"), news("none")] == [seen(), ()]
    assert [news("gpu_reset"), news("gpu_reset")] == [seen(action="gpu_reset"), ()]


def test_every_error_is_news_and_names_its_slice():
    condition = Condition()
    reading = GpuReading("GPU-1", recovery_action="none", xids=(Xid(31, 7), Xid(79)))
    told = seen(GpuFault("xid", 31, SlotId("MIG-1")), GpuFault("xid", 79))
    assert [condition.news([reading], INVENTORY) for _ in range(2)] == [told, told]


def test_memory_errors_are_told_as_they_are_counted_and_not_for_those_of_before():
    condition = Condition()

    def news(count: int) -> tuple[GpuSeen, ...]:
        return condition.news(
            [GpuReading("GPU-1", recovery_action="none", ecc_uncorrected=count)], INVENTORY
        )

    assert [news(3), news(3), news(4)] == [seen(), (), seen(GpuFault("ecc", 4))]


def test_power_above_idle_is_known_for_whole_gpus_alone():
    readings = [
        GpuReading("GPU-1", power_mw=300_000, power_idle_mw=50_000),
        GpuReading("GPU-2", power_mw=60_000, power_idle_mw=50_000),
    ]
    assert power_above_idle_mw(readings, INVENTORY) == {SlotId("GPU-2"): 10_000}
    assert power_above_idle_mw([GpuReading("GPU-2", power_mw=60_000)], INVENTORY) == {}
