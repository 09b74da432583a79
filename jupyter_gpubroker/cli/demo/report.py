"""What was seen, step by step: collected for JSON, told live to people."""

from __future__ import annotations

import json
import shutil
import textwrap
import time
from dataclasses import asdict, dataclass

import click

from ..quantities import say_duration

NAME_WIDTH = 26
INDENT = NAME_WIDTH + 18


@dataclass(frozen=True, slots=True)
class Evidence:
    """What shows that a step happened: the process, slot and lease concerned, and what was seen of them."""

    detail: str
    pid: int | None = None
    slot: str | None = None
    lease: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a story. `at_s` counts from the start of the demo."""

    name: str
    at_s: float
    ok: bool
    pid: int | None
    slot: str | None
    lease: str | None
    give_back: str
    detail: str


class Report:
    """All steps so far. Silent until the end with JSON; else each is told as it happens."""

    def __init__(self, as_json: bool) -> None:
        self.steps: list[Step] = []
        self._as_json = as_json
        self._started_s = time.monotonic()

    @property
    def ok(self) -> bool:
        """Whether all that should have happened did."""
        return bool(self.steps) and all(step.ok for step in self.steps)

    def say(self, sentence: str, *, bold: bool = False) -> None:
        """Tell people something that is no step."""
        if not self._as_json:
            click.secho(sentence, bold=bold)

    def saw(self, name: str, give_back: str, evidence: Evidence) -> None:
        """A step happened just now."""
        self._add(name, give_back, evidence, ok=True)

    def missed(self, name: str, give_back: str, detail: str) -> None:
        """A step did not happen."""
        self._add(name, give_back, Evidence(detail), ok=False)

    def finish(self) -> None:
        """The result: one JSON object, or the last line of the story."""
        if self._as_json:
            click.echo(
                json.dumps(
                    {"ok": self.ok, "steps": [asdict(step) for step in self.steps]}, indent=2
                )
            )
            return
        missed = sum(not step.ok for step in self.steps)
        took = say_duration(round((time.monotonic() - self._started_s) * 1000))
        if missed:
            click.secho(
                f"{missed} of {len(self.steps)} steps did not happen ({took}).", fg="red", bold=True
            )
        else:
            click.secho(f"All {len(self.steps)} steps happened ({took}).", fg="green", bold=True)

    def _add(self, name: str, give_back: str, evidence: Evidence, *, ok: bool) -> None:
        at_s = round(time.monotonic() - self._started_s, 2)
        step = Step(
            name, at_s, ok, evidence.pid, evidence.slot, evidence.lease, give_back, evidence.detail
        )
        self.steps.append(step)
        if not self._as_json:
            mark = click.style("yes", fg="green") if ok else click.style("NO ", fg="red", bold=True)
            first, *rest = _wrapped(evidence.detail)
            click.echo(f"  {at_s:5.1f} s  {mark}  {name.replace('_', ' '):{NAME_WIDTH}}  {first}")
            for line in rest:
                click.echo(" " * INDENT + line)


def _wrapped(detail: str) -> list[str]:
    """The detail in the room that is left beside the columns."""
    room = max(shutil.get_terminal_size().columns - INDENT, 30)
    return textwrap.wrap(detail, room) or [""]
