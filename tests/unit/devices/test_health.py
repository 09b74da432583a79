"""Errors mean what their table says: the user's program is told, a sick GPU leaves the pool and comes back by itself."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.devices.health import ACTION_NAMES as NAMES
from jupyter_gpubroker.devices.health import (
    PROBATION_MS,
    RECOVERY_ACTIONS,
    XIDS,
    GpuHealth,
    Severity,
    fault_of,
    seen,
    told_to_holders,
)
from jupyter_gpubroker.devices.reader import GpuReading, Xid

WELL = GpuReading("GPU-0", recovery_action="none")


def reading(*codes: int, action: str | None = "none", state: str = "ok") -> GpuReading:
    xids = tuple(Xid(code) for code in codes)
    return GpuReading("GPU-0", state=state, recovery_action=action, xids=xids)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [13, 31, 43, 45, 68])
def test_a_programs_own_error_is_told_to_its_holder_and_makes_no_gpu_sick(code: int) -> None:
    found = reading(code)
    assert told_to_holders(found) == [Xid(code)]
    assert seen(GpuHealth(), found, 5).condition == "ok"


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        (94, Severity.RESTART_APPLICATION),  # k8s-device-plugin#1974
        (109, Severity.RESET),  # k8s-device-plugin#1974
        (64, Severity.RESET),  # awslabs/awsome-distributed-ai#1190
        (48, Severity.RESET),
        (79, Severity.REBOOT),
        (63, Severity.NOTE),
        (999, Severity.NOTE),  # a code that the library does not know
        (12345, Severity.NOTE),
    ],
)
def test_the_catalogue_says_how_bad_a_code_is(code: int, severity: Severity) -> None:
    assert fault_of(Xid(code)).severity is severity


def test_every_recovery_action_of_the_driver_has_a_severity() -> None:
    assert set(NAMES.values()) == set(RECOVERY_ACTIONS)
    assert [name for name, severity in RECOVERY_ACTIONS.items() if severity < Severity.DRAIN] == [
        "none"
    ]


@pytest.mark.parametrize("code", [code for code, fault in XIDS.items() if fault.severity >= 3])
def test_a_grave_error_makes_the_gpu_sick(code: int) -> None:
    health = seen(GpuHealth(), reading(13, code), 5)
    assert (health.condition, health.cause, health.since_ms) == ("sick", f"xid:{code}", 5)


def test_what_the_driver_asks_for_makes_the_gpu_sick_without_any_event() -> None:
    # scitix/sichek#121: the fault was before anybody listened.
    health = seen(GpuHealth(), reading(action="gpu_reset"), 5)
    assert (health.condition, health.cause, health.severity) == (
        "sick",
        "action:gpu_reset",
        Severity.RESET,
    )


def test_an_action_that_nobody_knows_is_one() -> None:
    assert seen(GpuHealth(), reading(action="action_12"), 5).condition == "sick"


def test_a_lost_gpu_is_sick() -> None:
    assert seen(GpuHealth(), reading(state="lost", action=None), 5).cause == "lost"


def test_the_gravest_cause_is_the_one_told() -> None:
    assert seen(GpuHealth(), reading(48, 79, action="gpu_reset"), 5).cause == "xid:79"


def test_a_sick_gpu_stays_so_while_its_cause_lasts() -> None:
    health = seen(GpuHealth(), reading(action="gpu_reset"), 5)
    assert seen(health, reading(action="gpu_reset"), 900_000) == health


def test_a_gpu_comes_back_after_a_probation_without_errors() -> None:
    health = seen(GpuHealth(), reading(48), 0)
    health = seen(health, WELL, 1_000)
    assert (health.condition, health.cause) == ("probation", "xid:48")
    assert seen(health, WELL, 999 + PROBATION_MS).condition == "probation"
    assert seen(health, WELL, 1_000 + PROBATION_MS) == GpuHealth("ok", 1_000 + PROBATION_MS)


def test_a_new_error_in_the_probation_begins_it_anew() -> None:
    health = seen(seen(GpuHealth(), reading(48), 0), WELL, 1_000)
    health = seen(health, reading(48), 2_000)
    assert (health.condition, health.since_ms) == ("sick", 2_000)
    health = seen(health, WELL, 3_000)
    assert seen(health, WELL, 1_000 + PROBATION_MS).condition == "probation"


def test_a_programs_error_does_not_prolong_the_probation() -> None:
    health = seen(seen(GpuHealth(), reading(48), 0), WELL, 1_000)
    assert seen(health, reading(13), 2_000) == health
