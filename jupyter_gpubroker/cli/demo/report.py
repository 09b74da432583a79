"""What was seen, step by step: collected for JSON, told to people.

Several notebooks are at work at the same time. Their stories are told one after the other: the first as it happens,
each later one from where it is by then.
"""

from __future__ import annotations

import json
import shutil
import textwrap
import time
from dataclasses import asdict, dataclass

import click

from ...quantities import say_duration

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
    """All stories so far, in the order in which they are told. `unfinished` are the steps that the end of the play cut off."""

    def __init__(self, as_json: bool) -> None:
        self.unfinished: list[str] = []
        self._as_json = as_json
        self._started_s = time.monotonic()
        self._chapters: list[Chapter] = []
        self._told = 0

    @property
    def steps(self) -> list[Step]:
        """Every step of every story."""
        return [step for chapter in self._chapters for step in chapter.steps]

    @property
    def ok(self) -> bool:
        """Whether all that should have happened did."""
        return bool(self.steps) and all(step.ok for step in self.steps)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start of the demo."""
        return time.monotonic() - self._started_s

    def say(self, sentence: str) -> None:
        """Tell people something that is no step."""
        if not self._as_json:
            click.secho(sentence, bold=True)

    def begin(self, give_back: str, title: str) -> Chapter:
        """A further story."""
        chapter = Chapter(self, give_back, title)
        self._chapters.append(chapter)
        return chapter

    def missed(self, name: str, detail: str) -> None:
        """Something that belongs to no story did not happen."""
        chapter = self.begin("", "")
        chapter.missed(name, detail)
        chapter.close()

    def tell(self) -> None:
        """Print what can be told by now."""
        while not self._as_json and self._told < len(self._chapters):
            chapter = self._chapters[self._told]
            for line in chapter.take_lines():
                click.echo(line)
            if not chapter.is_over:
                return
            self._told += 1

    def finish(self) -> None:
        """The result: one JSON object, or the last line of the story."""
        steps = self.steps
        if self._as_json:
            click.echo(
                json.dumps({"ok": self.ok, "steps": [asdict(step) for step in steps]}, indent=2)
            )
            return
        missed = sum(not step.ok for step in steps)
        took = say_duration(round(self.elapsed_s * 1000))
        if missed:
            click.secho(
                f"\n{missed} of {len(steps)} steps did not happen ({took}).", fg="red", bold=True
            )
        else:
            click.secho(f"\nAll {len(steps)} steps happened ({took}).", fg="green", bold=True)


class Chapter:
    """One story: its steps, and the lines that were not told yet."""

    def __init__(self, report: Report, give_back: str, title: str) -> None:
        self.steps: list[Step] = []
        self.is_over = False
        self._report = report
        self._give_back = give_back
        self._lines = [click.style(f"\n{give_back}: {title}", bold=True)] if title else []

    def saw(self, name: str, evidence: Evidence) -> None:
        """A step happened just now."""
        self._add(name, evidence, ok=True)

    def missed(self, name: str, detail: str) -> None:
        """A step did not happen."""
        self._add(name, Evidence(detail), ok=False)

    def unfinished(self, name: str) -> None:
        """A step was under way when the play was stopped."""
        self._report.unfinished.append(f"{name.replace('_', ' ')} ({self._give_back})")
        self.missed(name, "still going on when the demo was stopped")

    def close(self) -> None:
        """Nothing more will happen here."""
        self.is_over = True
        self._report.tell()

    def take_lines(self) -> list[str]:
        """What is to be told now, once."""
        lines, self._lines = self._lines, []
        return lines

    def _add(self, name: str, evidence: Evidence, *, ok: bool) -> None:
        step = Step(
            name,
            round(self._report.elapsed_s, 2),
            ok,
            evidence.pid,
            evidence.slot,
            evidence.lease,
            self._give_back,
            evidence.detail,
        )
        self.steps.append(step)
        self._lines.extend(_lines(step))
        self._report.tell()


def _lines(step: Step) -> list[str]:
    """A step for people, in columns; the detail is wrapped into the room that is left."""
    mark = click.style("yes", fg="green") if step.ok else click.style("NO ", fg="red", bold=True)
    room = max(shutil.get_terminal_size().columns - INDENT, 30)
    first, *rest = textwrap.wrap(step.detail, room) or [""]
    name = step.name.replace("_", " ")
    head = f"  {step.at_s:5.1f} s  {mark}  {name:{NAME_WIDTH}}  {first}"
    return [head, *(" " * INDENT + line for line in rest)]
