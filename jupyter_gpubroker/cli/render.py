"""Output: JSON for programs, plain tables for people. What things mean is said by the broker's sentences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from ..quantities import say_duration, say_memory
from ..wire.views import (
    GpusView,
    GpuView,
    HealthView,
    JobView,
    LeaseView,
    QueueEntry,
    RequestView,
    RulesView,
    SlotView,
    Values,
)

SHORT_ID = 8
UNKNOWN = "-"
SLOT_STATES = {"draining": "being checked", "quarantined": "set aside"}
# The numbers behind an answer of `why`; what its sentence has said already is not among them.
NUMBERS = {
    "place": "place in line",
    "waiting": "waiting for the like",
    "waited_ms": "waited",
    "expected_in_ms": "expected in",
    "held_for_ms": "held for",
    "verdict_for_ms": "like this for",
    "limit_ms": "may be taken after",
    "kept_for_ms": "kept for another",
    "keeps_left": "keeps left",
    "attempt": "attempt",
    "ran_for_ms": "ran for",
    "exit_status": "exit status",
}


def echo_json(value: Any) -> None:
    """A view, or a mapping of views, as JSON."""
    click.echo(json.dumps(msgspec.to_builtins(value), indent=2))


def echo_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one is never padded or cut."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        click.echo(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


def echo_gpus(gpus: Sequence[GpuView]) -> None:
    """One line per slot; a GPU that offers none gets one too."""
    rows: list[tuple[str, ...]] = []
    for gpu in gpus:
        rows.extend(_slot_row(gpu, slot) for slot in gpu.slots)
        if not gpu.slots:
            memory = say_memory(gpu.memory_mib)
            rows.append(
                (
                    str(gpu.index),
                    _model(gpu),
                    UNKNOWN,
                    memory,
                    gpu.state.replace("_", " "),
                    UNKNOWN,
                    UNKNOWN,
                    gpu.uuid,
                )
            )
    echo_table(("GPU", "MODEL", "SLICE", "MEMORY", "STATE", "USED", "BUSY", "ID"), rows)
    for slot in (slot for gpu in gpus for slot in gpu.slots if slot.reason is not None):
        assert slot.reason is not None
        click.echo(f"{slot.id}: {slot.reason.sentence}")


def echo_leases(leases: Sequence[LeaseView], names: Mapping[str, str]) -> None:
    """What somebody holds; `names` are the sessions' by id."""
    rows = [
        (
            lease.id[:SHORT_ID],
            shortened(names.get(lease.session_id, UNKNOWN)),
            lent_devices(lease),
            lease.sentence,
        )
        for lease in leases
    ]
    echo_table(("LEASE", "HELD BY", "DEVICES", "STATE"), rows)


def echo_requests(requests: Sequence[RequestView]) -> None:
    """What somebody waits for."""
    rows = [
        (
            request.id[:SHORT_ID],
            request.queue,
            _place(request.place),
            _expected(request.expected_in_ms),
            request.sentence,
        )
        for request in requests
    ]
    echo_table(("REQUEST", "QUEUE", "PLACE", "EXPECTED", "STATE"), rows)


def echo_jobs(jobs: Sequence[JobView]) -> None:
    """Batch jobs, newest last."""
    rows = [
        (
            job.id[:SHORT_ID],
            shortened(job.name),
            job.queue,
            (job.outcome or job.state).replace("_", " "),
            UNKNOWN if job.ran_for_ms is None else say_duration(job.ran_for_ms),
            UNKNOWN if job.exit_status is None else str(job.exit_status),
            job.sentence,
        )
        for job in jobs
    ]
    echo_table(("JOB", "NAME", "QUEUE", "STATE", "RAN", "STATUS", "DETAIL"), rows)


def echo_queue(waiting: Sequence[QueueEntry]) -> None:
    """Everybody in line; others are seen, not named."""
    rows = [
        (
            str(entry.place),
            entry.queue,
            (entry.id or UNKNOWN)[:SHORT_ID],
            shortened(entry.name or ("you" if entry.mine else "somebody")),
            entry.what,
            say_duration(entry.waited_ms),
            _expected(entry.expected_in_ms),
        )
        for entry in waiting
    ]
    echo_table(("PLACE", "QUEUE", "ID", "WHO", "WANTS", "WAITED", "EXPECTED"), rows)


def echo_numbers(numbers: Values) -> None:
    """Those that are known."""
    for name, label in NUMBERS.items():
        value = numbers.get(name)
        if value is not None:
            shown = say_duration(int(value)) if name.endswith("_ms") else str(value)
            click.echo(f"  {label}: {shown}")


def echo_rules(rules: RulesView) -> None:
    """Each policy in words, and the lines with theirs."""
    for policy in rules.policies:
        click.echo(f"{policy.name}: {policy.sentence}")
    click.echo()
    rows = [
        (
            queue.name,
            queue.tier,
            queue.policy or "idleness is no reason here",
            "yes" if queue.preemptible else "no",
        )
        for queue in rules.queues
    ]
    echo_table(("QUEUE", "TIER", "POLICY", "PREEMPTIBLE"), rows)


def devices(health: HealthView, gpus: GpusView) -> str:
    """Which devices there are, in a few words."""
    if health.problem is not None:
        return "no GPU" if health.problem.code == "no_gpu" else "the GPUs cannot be read"
    if not health.ready:
        return "devices not looked at yet"
    count = sum(gpu.simulated == health.simulated for gpu in gpus.gpus)
    what = "GPU" if count == 1 else "GPUs"
    return (
        f"{count} simulated {what} ({health.simulates})"
        if health.simulated
        else f"{count} NVIDIA {what}"
    )


def local_time(at: str) -> str:
    """A time of the broker's (RFC 3339, UTC) by the clock on the user's wall."""
    moment = datetime.fromisoformat(at.replace("Z", "+00:00")).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def shortened(text: str, width: int = 40) -> str:
    """User text on one line and of bounded length; control characters become visible."""
    safe = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
    return safe if len(safe) <= width else "..." + safe[3 - width :]


def _model(gpu: GpuView) -> str:
    return gpu.model + (" (simulated)" if gpu.simulated else "")


def _slot_row(gpu: GpuView, slot: SlotView) -> tuple[str, ...]:
    kind = slot.profile or "whole"
    return (str(gpu.index), _model(gpu), kind, say_memory(slot.memory_mib), *_use(slot), slot.id)


def _use(slot: SlotView) -> tuple[str, str, str]:
    state = (
        f"yours ({slot.lease_id[:SHORT_ID]})"
        if slot.lease_id
        else "taken"
        if slot.taken
        else SLOT_STATES.get(slot.state, slot.state)
    )
    used = UNKNOWN if slot.memory_used_mib is None else say_memory(slot.memory_used_mib)
    busy = UNKNOWN if slot.utilisation_percent is None else f"{slot.utilisation_percent}%"
    return state, used, busy


def lent_devices(lease: LeaseView) -> str:
    """What a lease has, in a few words."""
    kinds = [profile or model for model, profile in zip(lease.models, lease.profiles, strict=True)]
    return ", ".join(kinds) + (" (simulated)" if lease.simulated else "") if kinds else UNKNOWN


def _place(place: int | None) -> str:
    return UNKNOWN if place is None else str(place)


def _expected(expected_in_ms: int | None) -> str:
    return UNKNOWN if expected_in_ms is None else f"in {say_duration(expected_in_ms)}"
