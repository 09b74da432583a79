"""What a holder is doing, decided from numbers alone: the rules in their order, and what each rests on.

    judge(evidence) -> Ruling            replay(values) -> Ruling

The first rule that applies decides. Evidence holds everything that the rules read, the limits in force included, so what is
kept of it (a flat row of numbers, no names, no code) is decided again the same, years later and elsewhere. Where the numbers
come from is `watch`'s business; what a verdict means for the lease is `idle`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum

Scalar = str | int | bool | None


class Activity(str, Enum):
    """What the main thread of a kernel does, as the watcher sees it. `unknown` is never taken for idle."""

    UNKNOWN = "unknown"
    IDLE = "idle"
    RUNNING = "running"
    INPUT = "input"
    DEBUGGER = "debugger"


class Verdict(str, Enum):
    ACTIVE = "active"
    HOST_BUSY = "host_busy"
    WAITING_USER = "waiting_user"
    IDLE = "idle"
    NEVER_USED = "never_used"
    SERVING = "serving"
    SUSPECT = "suspect"
    UNKNOWN = "unknown"


PROMPTS = frozenset({Activity.INPUT, Activity.DEBUGGER})
# A server has answered more than once since anybody last ran something: once may be what started it.
BURSTS_MIN = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a holder at one moment. None is unknown, never zero and never idle. All clocks count watched time.

    was, was_for_ms: the verdict before, and how long it has lasted.
    is_busy:      it used the device in the last window.
    source:       what that was read from.
    quiet_ms:     so long the device has been quiet.
    blind_ms:     so long nothing was known of the device.
    spinning_ms:  so long the device has been busy at the power of an idle one.
    bursts:       uses that began since the last execution, with a pause before each.
    listens:      a process of the holder waits for connections; where nobody can tell, it may.
    context_seen: the holder was on the device at all.
    spell_ms:     since the holder was granted the device, last executed something, or last worked on the host by itself.
    host_works:   its processes have worked on the host for long enough to count.
    host_quiet_ms: so long they have not worked at all.
    settle_ms, patience_ms, suspect_ms: the limits in force (`rules.Limits`).
    host_decides: where the device tells nothing, the host may (`rules.Policy`).
    """

    at_ms: int
    was: Verdict
    was_for_ms: int
    is_busy: bool | None
    activity: Activity
    context_seen: bool
    settle_ms: int
    patience_ms: int
    suspect_ms: int
    source: str | None = None
    quiet_ms: int = 0
    blind_ms: int = 0
    spinning_ms: int = 0
    bursts: int = 0
    listens: bool | None = None
    spell_ms: int = 0
    host_works: bool = False
    host_quiet_ms: int | None = None
    host_decides: bool = False

    @property
    def rest_ms(self) -> int:
        """So long neither the device nor the holder has done anything."""
        return min(self.quiet_ms, self.spell_ms)


@dataclass(frozen=True, slots=True)
class Ruling:
    """The verdict, the name of the rule that gave it, and how long it has lasted."""

    verdict: Verdict
    rule: str
    for_ms: int


@dataclass(frozen=True, slots=True)
class Rule:
    """`verdict` None: it stays what it was. `lasted` None: since it was given."""

    name: str
    verdict: Verdict | None
    applies: Callable[[Evidence], bool]
    lasted: Callable[[Evidence], int] | None = None


HOST_ALONE = "host_alone"


def _is_at_rest_on_the_host(seen: Evidence) -> bool:
    is_waiting = seen.activity in PROMPTS and not seen.host_works
    is_still = seen.host_quiet_ms is not None and seen.host_quiet_ms >= seen.patience_ms
    return seen.is_busy is None and seen.host_decides and is_waiting and is_still


def _is_out_of_sight(seen: Evidence) -> bool:
    return seen.is_busy is None and (
        seen.blind_ms >= seen.patience_ms or seen.was is Verdict.UNKNOWN
    )


RULES: tuple[Rule, ...] = (
    Rule(
        HOST_ALONE,
        Verdict.WAITING_USER,
        _is_at_rest_on_the_host,
        lambda seen: min(seen.spell_ms, seen.host_quiet_ms or 0),
    ),
    Rule("out_of_sight", Verdict.UNKNOWN, _is_out_of_sight),
    Rule("missed", None, lambda seen: seen.is_busy is None),
    Rule(
        "spins",
        Verdict.SUSPECT,
        lambda seen: bool(seen.is_busy) and seen.spinning_ms >= seen.suspect_ms,
        lambda seen: seen.spinning_ms,
    ),
    Rule("uses_it", Verdict.ACTIVE, lambda seen: bool(seen.is_busy)),
    Rule(
        "used_it_just_now",
        Verdict.ACTIVE,
        lambda seen: seen.was is Verdict.ACTIVE and seen.quiet_ms < seen.settle_ms,
    ),
    Rule(
        "serves",
        Verdict.SERVING,
        lambda seen: seen.listens is not False and seen.bursts >= BURSTS_MIN,
        lambda seen: seen.quiet_ms,
    ),
    Rule("kernel_unseen", Verdict.UNKNOWN, lambda seen: seen.activity is Activity.UNKNOWN),
    Rule(
        "cell_runs",
        Verdict.HOST_BUSY,
        lambda seen: seen.activity is Activity.RUNNING,
        lambda seen: seen.rest_ms,
    ),
    Rule("host_works", Verdict.HOST_BUSY, lambda seen: seen.host_works),
    Rule(
        "at_a_prompt",
        Verdict.WAITING_USER,
        lambda seen: seen.activity in PROMPTS,
        lambda seen: seen.rest_ms,
    ),
    Rule(
        "no_use_yet",
        Verdict.NEVER_USED,
        lambda seen: not seen.context_seen,
        lambda seen: seen.rest_ms,
    ),
    Rule("at_rest", Verdict.IDLE, lambda seen: seen.is_busy is False, lambda seen: seen.rest_ms),
)


def judge(seen: Evidence) -> Ruling:
    """The first rule that applies."""
    rule = next(rule for rule in RULES if rule.applies(seen))
    verdict = seen.was if rule.verdict is None else rule.verdict
    if rule.lasted is not None:
        return Ruling(verdict, rule.name, rule.lasted(seen))
    return Ruling(verdict, rule.name, seen.was_for_ms if verdict is seen.was else 0)


# --- keeping it -----------------------------------------------------------------------------------------------------------


def to_values(seen: Evidence) -> dict[str, Scalar]:
    """The evidence as a flat row of numbers and words."""
    row: dict[str, Scalar] = {}
    for field in fields(seen):
        value = getattr(seen, field.name)
        row[field.name] = value.value if isinstance(value, Enum) else value
    return row


def replay(values: Mapping[str, object]) -> Ruling:
    """Decide again from what was kept. Raises ValueError where that is no evidence of this version."""
    row = dict(values)
    try:
        row["was"], row["activity"] = Verdict(row["was"]), Activity(row["activity"])
        return judge(Evidence(**row))  # type: ignore[arg-type]
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is no evidence: {error}") from error
