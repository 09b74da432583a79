"""Workloads: notebook sessions that use GPUs in bursts, and batch jobs; read from CSV files of three formats.

    mixed        submit_s, kind (interactive | batch), session, id, group, gpus, duration_s, think_s
    interactive  submit_s, session, gpus, duration_s, think_s
    batch        submit_s, duration_s, gpus, group

Interactive rows are a closed loop: a session's first burst comes at its `submit_s`, each later one `think_s` after the
session's previous burst has really ended, however long that one had to wait.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

DAY_MS = 24 * 3_600_000
ROWS_MAX = 1_000_000


class BadTrace(Exception):
    """The file cannot be replayed. The message says where and why."""


@dataclass(frozen=True, slots=True)
class Burst:
    """One stretch of GPU work of a session, asked for `think_ms` after its previous one ended."""

    gpus: int
    duration_ms: int
    think_ms: int = 0


@dataclass(frozen=True, slots=True)
class Notebook:
    """A session. Its lease is as large as its largest burst, since nobody knows beforehand which burst comes next."""

    id: str
    start_ms: int
    bursts: tuple[Burst, ...]

    @property
    def gpus(self) -> int:
        return max(burst.gpus for burst in self.bursts)

    def busy_gpu_ms(self, until_ms: int) -> int:
        """GPU time of the bursts up to a moment, if none of them ever had to wait."""
        at_ms, busy = self.start_ms, 0
        for burst in self.bursts:
            at_ms += burst.think_ms
            busy += burst.gpus * max(0, min(burst.duration_ms, until_ms - at_ms))
            at_ms += burst.duration_ms
        return busy


@dataclass(frozen=True, slots=True)
class BatchJob:
    id: str
    group: str
    submit_ms: int
    gpus: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class Workload:
    """What comes within `length_ms`, whole days from the first row's midnight."""

    notebooks: tuple[Notebook, ...]
    jobs: tuple[BatchJob, ...]
    length_ms: int

    def within(self, gpus: int) -> Workload:
        """Without what a pool of so many GPUs could never serve."""
        return replace(
            self,
            notebooks=tuple(one for one in self.notebooks if one.gpus <= gpus),
            jobs=tuple(job for job in self.jobs if job.gpus <= gpus),
        )


def read_mixed(path: Path) -> Workload:
    """Raises BadTrace."""
    rows = list(_rows(path, ("submit_s", "kind", "gpus", "duration_s")))
    unknown = {row["kind"] for row in rows} - {"interactive", "batch"}
    if unknown:
        raise BadTrace(f"{path}: a row is interactive or batch, not {min(unknown)!r}.")
    notebooks = _notebooks(row for row in rows if row["kind"] == "interactive")
    jobs = _jobs(row for row in rows if row["kind"] == "batch")
    return Workload(notebooks, jobs, whole_days_ms(notebooks, jobs))


def read_interactive(path: Path) -> tuple[Notebook, ...]:
    """Raises BadTrace."""
    return _notebooks(_rows(path, ("submit_s", "session", "gpus", "duration_s", "think_s")))


def read_batch(path: Path) -> tuple[BatchJob, ...]:
    """Raises BadTrace."""
    return _jobs(_rows(path, ("submit_s", "duration_s", "gpus", "group")))


def whole_days_ms(notebooks: Iterable[Notebook], jobs: Iterable[BatchJob]) -> int:
    """The days in which anything comes."""
    starts = [one.start_ms for one in notebooks] + [job.submit_ms for job in jobs]
    return (max(starts, default=0) // DAY_MS + 1) * DAY_MS


# --- rows -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with where it stands."""

    where: str
    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.values.get(name) or ""

    def number(self, name: str, least: int) -> int:
        try:
            number = int(self[name])
        except ValueError:
            number = least - 1
        if number < least:
            raise BadTrace(
                f"{self.where}: {name} is a whole number from {least}, not {self[name]!r}."
            )
        return number

    def ms(self, name: str, least_s: int = 0) -> int:
        return self.number(name, least_s) * 1_000


def _rows(path: Path, needed: tuple[str, ...]) -> Iterable[_Row]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in needed if name not in (reader.fieldnames or ())]
            if missing:
                raise BadTrace(f"{path}: the column {missing[0]!r} is missing.")
            for values in reader:
                if reader.line_num > ROWS_MAX:
                    raise BadTrace(f"{path}: more than {ROWS_MAX} rows.")
                yield _Row(f"{path}, line {reader.line_num}", values)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadTrace(f"{path} cannot be read: {error}.") from error


def _notebooks(rows: Iterable[_Row]) -> tuple[Notebook, ...]:
    by_session: dict[str, list[_Row]] = {}
    for row in rows:
        by_session.setdefault(row["session"], []).append(row)
    notebooks = [_notebook(session, found) for session, found in by_session.items()]
    return tuple(sorted(notebooks, key=lambda one: (one.start_ms, one.id)))


def _notebook(session: str, rows: list[_Row]) -> Notebook:
    if not session:
        raise BadTrace(f"{rows[0].where}: an interactive row names its session.")
    first, *later = sorted(rows, key=lambda row: row.number("submit_s", 0))
    bursts = [Burst(first.number("gpus", 1), first.ms("duration_s", 1))]
    bursts += (Burst(r.number("gpus", 1), r.ms("duration_s", 1), r.ms("think_s")) for r in later)
    return Notebook(session, first.ms("submit_s"), tuple(bursts))


def _jobs(rows: Iterable[_Row]) -> tuple[BatchJob, ...]:
    jobs = [
        BatchJob(
            row["id"] or f"job{number}",
            row["group"] or "batch",
            row.ms("submit_s"),
            row.number("gpus", 1),
            row.ms("duration_s", 1),
        )
        for number, row in enumerate(rows)
    ]
    return tuple(sorted(jobs, key=lambda job: (job.submit_ms, job.id)))
