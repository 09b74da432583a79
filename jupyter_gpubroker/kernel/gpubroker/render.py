"""Views of the broker as text for people. What the broker says in sentences is passed on in the user's language."""

from __future__ import annotations

import calendar
import time
from typing import Any, Iterable, List, Optional

from .broker import View
from .errors import Reason
from .quantities import duration_text, memory_text
from .saving import Report
from .sentences import is_known, names, of_view, say, say_of

LOST_MAX = 10
STORY_MAX = 10
# What a person may want to know beside the sentence; states are in the sentence, in words.
NUMBERS = (
    "place waited_ms expected_in_ms held_for_ms verdict_for_ms limit_ms kept_for_ms keeps_left"
).split()


def what(lease: View) -> str:
    """What a lease is of: `H200 141 GiB`, `2 x A100 80 GiB`, `1g.18gb of H200 18 GiB (simulated)`."""
    models = list(lease["models"]) or ["GPU"]
    profiles = [profile for profile in lease.get("profiles", ()) if profile]
    count = f"{len(models)} x " if len(models) > 1 else ""
    name = f"{profiles[0]} of {models[0]}" if profiles else models[0]
    simulated = f" ({say('simulated')})" if lease["simulated"] else ""
    return f"{count}{name} {memory_text(lease['memory_mib'] // len(models))}{simulated}"


def granted(lease: View) -> str:
    ends_in_ms = lease["ends_in_ms"]
    until = (
        say_of(lease, "granted_open")
        if ends_in_ms is None
        else say_of(lease, "granted_until", left=duration_text(ends_in_ms))
    )
    return f"{say_of(lease, 'granted', what=what(lease))} {until}"


def reason(why: Reason) -> str:
    """A reason found in this process."""
    code = "reason_" + why["code"]
    return say(code, **why["values"]) if is_known(code) else str(why["code"]).replace("_", " ")


def status(session: View, lease: Optional[View], queue: View) -> str:
    """What the kernel holds or waits for, and what is free."""
    lines = [of_view(lease)] if lease else [*_last(session), say("no_lease")]
    if lease and lease["state"] == "active":
        lines.append(say("way_back", kind=say("kind_" + lease["give_back"])))
    lines += [
        say("waiting_request", sentence=of_view(request))
        for request in session["requests"]
        if request["state"] == "waiting"
    ]
    lines += map(of_view, session.get("warnings", ()))
    lines.append(say("slots_free", free=queue["free_slots"], slots=queue["slots"]))
    return "\n".join(lines)


def _last(session: View) -> List[str]:
    """What became of the GPU that this kernel, or the process it took the place of, held last."""
    lease = session.get("last_lease")
    if not lease:
        return []
    ended_ago_ms = lease.get("ended_ago_ms")
    if ended_ago_ms is None:
        return [of_view(lease)]
    return [say("ended_ago", sentence=of_view(lease), time=duration_text(ended_ago_ms))]


def why(view: View) -> str:
    """The sentence, the numbers behind it, and how it came about."""
    numbers = [
        number(name, view["numbers"][name])
        for name in NUMBERS
        if view["numbers"].get(name) is not None
    ]
    lines = [of_view(view), *([say("numbers", numbers=", ".join(numbers))] if numbers else [])]
    told = ""
    for step in view["story"][-STORY_MAX:]:
        said = of_view(step["reason"])
        if said != told:
            lines.append(f"  {clock(step['at'])}  {said}")
        told = said
    return "\n".join(lines)


def number(name: str, value: Any) -> str:
    """`held_for_ms`, 61000 as `held for 1 min 1 s`."""
    return say("number_" + name, value=duration_text(value) if name.endswith("_ms") else value)


def clock(at: str) -> str:
    """The local time of day of an RFC 3339 time in UTC."""
    seconds = calendar.timegm(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S"))
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def queue(view: View) -> str:
    """The waiting line."""
    lines = [
        say(
            "line_entry",
            place=entry["place"],
            whose=say("line_mine" if entry["mine"] else "line_other"),
            what=" ".join(filter(None, (entry["name"], entry["what"]))),
            waited=duration_text(entry["waited_ms"]),
        )
        for entry in view["waiting"]
    ]
    free = say("slots_free", free=view["free_slots"], slots=view["slots"])
    return "\n".join([*(lines or [say("line_empty")]), free])


def policy(named: List[View], health: View, lease: Optional[View], consent: str) -> str:
    """The rules that apply, if any do, with their numbers."""
    rules = [say("policy", name=rule["name"], sentence=of_view(rule)) for rule in named]
    lines = [*(rules or [say("policy_none")]), of_view(health, "mode_sentence")]
    if lease and lease["keeps_left"] is not None:
        lines.append(say("policy_keeps", count=lease["keeps_left"]))
    return "\n".join(filter(None, [*lines, consent]))


def losses(report: Report) -> str:
    """What a restart keeps and loses, for whoever is about to agree to one."""
    keeps = (
        say("restart_keeps", names=names(report.saved))
        if report.saved
        else say("restart_keeps_none")
    )
    lost = [say("restart_loses", name=name, why=why_not) for name, why_not in report.lost.items()]
    return " ".join([keeps, *lost[:LOST_MAX], say("restart_loses_always")])


def restored(report: Report) -> str:
    lost = [say("not_restored", name=name, why=why_not) for name, why_not in report.lost.items()]
    return "\n".join([say("restored", names=names(report.saved)), *lost])


def checks(found: Iterable[Any]) -> str:
    """One line for each check of the doctor."""
    return "\n".join(
        f"{'ok  ' if check.ok else 'BAD '} {check.name}: {check.sentence}" for check in found
    )
