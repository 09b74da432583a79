"""Output: JSON for programs, plain tables for people. What things mean is said by the broker's sentences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from ..wire.views import GpuView, JobView, LeaseView, QueueEntry, RequestView, SlotView
from .quantities import say_duration, say_memory

SHORT_ID = 8
UNKNOWN = "-"


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
                    gpu.state,
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
            _devices(lease),
            lease.sentence,
        )
        for lease in leases
    ]
    echo_table(("LEASE", "HOLDER", "DEVICES", "STATE"), rows)


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
            job.outcome or job.state,
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
        else slot.state
    )
    used = UNKNOWN if slot.memory_used_mib is None else say_memory(slot.memory_used_mib)
    busy = UNKNOWN if slot.utilisation_percent is None else f"{slot.utilisation_percent}%"
    return state, used, busy


def _devices(lease: LeaseView) -> str:
    kinds = [profile or model for model, profile in zip(lease.models, lease.profiles, strict=True)]
    return ", ".join(kinds) + (" (simulated)" if lease.simulated else "") if kinds else UNKNOWN


def _place(place: int | None) -> str:
    return UNKNOWN if place is None else str(place)


def _expected(expected_in_ms: int | None) -> str:
    return UNKNOWN if expected_in_ms is None else f"in {say_duration(expected_in_ms)}"
