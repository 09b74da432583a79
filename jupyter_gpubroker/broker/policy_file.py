"""Reads `policy.toml`: rules as data, checked completely before any of it is used.

Durations carry their unit ("30m", "1h30m", "90s", "500ms"). An unknown table, key or value is refused with the nearest
right one, since a misspelt limit that is silently ignored would surprise people later. A row that exists keeps the values
the file does not name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from ..core.events import PolicyApplied
from ..core.model import State
from ..core.rules import GENTLE, FaultRule, Limits, Policy, Queue, Remedy, Tier
from ..quantities import QuantityError, duration_ms
from ..suggestion import nearest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

FILE_BYTES_MAX = 64 * 1024
ROWS_MAX = 1_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

_POLICY_KEYS = {
    "idle": "idle_ms",
    "notice": "notice_ms",
    "never_used": "never_used_ms",
    "host_busy": "host_busy_ms",
    "keep": "keep_ms",
    "keeps_max": "keeps_max",
    "grace": "grace_ms",
    "serving": "serving_ms",
    "host_decides": "host_decides",
}
_LIMIT_KEYS = {
    field.name.removesuffix("_ms"): field.name for field in fields(Limits) if field.name != "id"
}
_QUEUE_KEYS = {"tier": "tier", "policy": "policy", "preemptible": "preemptible"}
_FAULT_KEYS = {"remedy": "remedy", "probation": "probation_ms"}
_FAULT = re.compile(r"xid(-[0-9]{1,4})?|ecc|recovery")
_COUNT_MAX = 1_000_000

Row = TypeVar("Row", Policy, Limits)


class PolicyRefused(Exception):
    """The file cannot be used. The message says where, why and what to write instead; nothing was applied."""


def parse_duration(text: object, where: str) -> int:
    """Milliseconds of "30m", "1h30m", "90s" or "500ms". Raises PolicyRefused, also for a number without unit."""
    try:
        return duration_ms(text if isinstance(text, str) else str(text))
    except QuantityError as error:
        raise PolicyRefused(f'{where} = {error} In this file with quotes: "30m".') from error


def parse_policy(text: str, state: State) -> PolicyApplied:
    """The rows that `text` sets, on top of those in `state`. Raises PolicyRefused."""
    if len(text.encode()) > FILE_BYTES_MAX:
        raise PolicyRefused(f"The policy file is longer than {FILE_BYTES_MAX} bytes.")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyRefused(f"The policy file is not TOML: {error}.") from error
    _known(document, ("policies", "queues", "limits", "faults"), "the policy file")
    policies = tuple(
        _durations(
            state.policies.get(name, replace(GENTLE, name=name)),
            rows,
            _POLICY_KEYS,
            f"policies.{name}",
        )
        for name, rows in _rows(document, "policies")
    )
    known_policies = {*state.policies, *(policy.name for policy in policies)}
    queues = tuple(
        _queue(state.queues.get(name), name, rows, known_policies)
        for name, rows in _rows(document, "queues")
    )
    faults = tuple(
        _fault(state.faults.get(name), name, rows) for name, rows in _rows(document, "faults")
    )
    limits = None
    if "limits" in document:
        limits = _durations(state.limits, _table(document, "limits"), _LIMIT_KEYS, "limits")
    return PolicyApplied(policies, queues, limits, faults=faults)


def _durations(row: Row, values: Mapping[str, Any], keys: Mapping[str, str], where: str) -> Row:
    """`row` with `values`; a field that ends in `_ms` is a duration, one that is true or false stays so, others are counts."""
    _known(values, keys, where)
    changed: dict[str, Any] = {}
    for key, value in values.items():
        field = keys[key]
        at = f"{where}.{key}"
        if field.endswith("_ms"):
            changed[field] = parse_duration(value, at)
        else:
            is_flag = isinstance(getattr(row, field), bool)
            changed[field] = _flag(value, at) if is_flag else _count(value, at)
    return replace(row, **changed)


def _queue(
    row: Queue | None, name: str, values: Mapping[str, Any], policies: Iterable[str]
) -> Queue:
    where = f"queues.{name}"
    _known(values, _QUEUE_KEYS, where)
    if row is None and "tier" not in values:
        raise PolicyRefused(
            f"{where} is a new queue and needs a tier: {_choices(tier.value for tier in Tier)}."
        )
    row = row or Queue(name, Tier.BATCH)
    if "tier" in values:
        row = replace(
            row, tier=Tier(_one_of(values["tier"], [tier.value for tier in Tier], f"{where}.tier"))
        )
    if "policy" in values:
        # TOML has no null: an empty name says that idleness is never a reason here.
        policy = values["policy"] and _one_of(values["policy"], policies, f"{where}.policy")
        row = replace(row, policy=policy or None)
    if "preemptible" in values:
        row = replace(row, preemptible=_flag(values["preemptible"], f"{where}.preemptible"))
    return row


def _fault(row: FaultRule | None, name: str, values: Mapping[str, Any]) -> FaultRule:
    where = f"faults.{name}"
    if not _FAULT.fullmatch(name):
        raise PolicyRefused(
            f'{where} names no fault. Write "xid-79" for one number, "xid" for all others, "ecc" or "recovery".'
        )
    _known(values, _FAULT_KEYS, where)
    row = row or FaultRule(name, Remedy.DRAIN)
    if "remedy" in values:
        words = [remedy.value for remedy in Remedy]
        row = replace(row, remedy=Remedy(_one_of(values["remedy"], words, f"{where}.remedy")))
    if "probation" in values:
        probation_ms = parse_duration(values["probation"], f"{where}.probation")
        row = replace(row, probation_ms=probation_ms)
    return row


def _rows(document: Mapping[str, Any], table: str) -> list[tuple[str, Mapping[str, Any]]]:
    rows = _table(document, table)
    if len(rows) > ROWS_MAX:
        raise PolicyRefused(f"[{table}] has more than {ROWS_MAX} rows.")
    for name in rows:
        if not _NAME.fullmatch(name):
            raise PolicyRefused(
                f"{name[:80]!r} is not a name for a row of [{table}]: letters, digits, _ and -, at most 64."
            )
    return [(name, _table(rows, name)) for name in rows]


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise PolicyRefused(f"{key} must be a table, such as [{key}], not {value!r}.")
    return value


def _known(values: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    for key in values:
        if key not in keys:
            raise PolicyRefused(f"{where} has no key {key[:80]!r}. {_nearest(key, keys)}")


def _one_of(value: object, choices: Iterable[str], where: str) -> str:
    choices = list(choices)
    if value in choices and isinstance(value, str):
        return value
    raise PolicyRefused(f"{where} = {value!r} is unknown. {_nearest(str(value), choices)}")


def _count(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _COUNT_MAX:
        raise PolicyRefused(f"{where} = {value!r} is not a whole number from 0 to {_COUNT_MAX}.")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise PolicyRefused(f"{where} is true or false, not {value!r}.")
    return value


def _nearest(word: str, choices: Iterable[str]) -> str:
    choices = list(choices)
    meant = nearest(word, choices)
    return f"There are {_choices(choices)}." if meant is None else f"Did you mean {meant!r}?"


def _choices(choices: Iterable[str]) -> str:
    return ", ".join(sorted(choices))
