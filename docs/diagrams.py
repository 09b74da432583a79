"""Draws the state diagrams of docs/architecture.md from the tables in `jupyter_gpubroker.core.machine`.

`python docs/diagrams.py` writes them between the markers of that file and nothing else; a test holds the file to the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jupyter_gpubroker.core import machine

ARCHITECTURE = Path(__file__).with_name("architecture.md")
BEGIN = "<!-- diagrams: drawn by docs/diagrams.py, do not edit -->"
END = "<!-- end of diagrams -->"


class Arc(NamedTuple):
    """One row of a state table, in words."""

    source: str
    cause: str
    target: str


def arcs_of(table: machine.Table[machine.S]) -> Sequence[Arc]:
    """The rows of a table in its own order; the first source is the state in which things begin."""
    return [Arc(source.value, cause, target.value) for (source, cause), target in table.items()]


TABLES: Mapping[str, Sequence[Arc]] = {
    "slot": arcs_of(machine.SLOT),
    "session": arcs_of(machine.SESSION),
    "request": arcs_of(machine.REQUEST),
    "lease": arcs_of(machine.LEASE),
    "job": arcs_of(machine.JOB),
}


def main() -> None:
    """Write the diagrams into the file."""
    ARCHITECTURE.write_text(with_diagrams(ARCHITECTURE.read_text()))


def with_diagrams(text: str) -> str:
    """`text` with the part between the markers drawn anew. Raises ValueError where a marker is missing."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{ARCHITECTURE.name} needs the lines {BEGIN!r} and {END!r}")
    drawn = "\n\n".join(section(name, arcs) for name, arcs in TABLES.items())
    return f"{before}{BEGIN}\n\n{drawn}\n\n{END}{after}"


def section(name: str, arcs: Sequence[Arc]) -> str:
    """One table as a heading, a Mermaid diagram, and who must act by when in each state that does not last."""
    return "\n\n".join([f"### {name.capitalize()}", diagram(arcs), duties(name, arcs)])


def diagram(arcs: Sequence[Arc]) -> str:
    """The table as a Mermaid diagram, the causes between the same two states on one arrow."""
    causes: dict[tuple[str, str], list[str]] = {}
    for arc in arcs:
        causes.setdefault((arc.source, arc.target), []).append(arc.cause)
    sources = {arc.source for arc in arcs}
    lines = [f"    [*] --> {arcs[0].source}"]
    lines += [f"    {start} --> {end}: {', '.join(why)}" for (start, end), why in causes.items()]
    lines += [f"    {state} --> [*]" for state in states_of(arcs) if state not in sources]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def duties(name: str, arcs: Sequence[Arc]) -> str:
    """Who owns each state that does not last, and what ends it, as a Markdown table."""
    rows = [
        f"| {state} | {machine.OWNER[key]} | {machine.DEADLINE[key]} |"
        for state in states_of(arcs)
        if (key := f"{name} {state}") in machine.OWNER
    ]
    return "\n".join(["| state | who must act | what ends it |", "|---|---|---|", *rows])


def states_of(arcs: Sequence[Arc]) -> Sequence[str]:
    """All states that a table names, in the order in which they appear, sources first."""
    return list(dict.fromkeys([arc.source for arc in arcs] + [arc.target for arc in arcs]))


if __name__ == "__main__":
    main()
