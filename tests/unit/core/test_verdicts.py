"""The table of verdicts: which rule decides what, and that what is kept decides the same again."""

from __future__ import annotations

import json
import string
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpubroker.core.catalogue import SENTENCES
from jupyter_gpubroker.core.model import Activity, Verdict
from jupyter_gpubroker.core.verdicts import RULES, Evidence, judge, replay, to_values

MINUTE = 60_000
IDLE, RUNNING, INPUT, DEBUGGER, UNSEEN = (
    Activity.IDLE,
    Activity.RUNNING,
    Activity.INPUT,
    Activity.DEBUGGER,
    Activity.UNKNOWN,
)
QUIET = Evidence(
    at_ms=100 * MINUTE,
    was=Verdict.IDLE,
    was_for_ms=MINUTE,
    is_busy=False,
    activity=IDLE,
    context_seen=True,
    settle_ms=10_000,
    patience_ms=MINUTE,
    suspect_ms=10 * MINUTE,
    quiet_ms=20 * MINUTE,
    spell_ms=30 * MINUTE,
    host_quiet_ms=20 * MINUTE,
)
BUSY: dict[str, Any] = {"is_busy": True, "quiet_ms": 0}
BLIND: dict[str, Any] = {"is_busy": None, "blind_ms": 2 * MINUTE}


@pytest.mark.parametrize(
    ("seen", "verdict", "rule"),
    [
        ({}, Verdict.IDLE, "at_rest"),
        ({"context_seen": False}, Verdict.NEVER_USED, "no_use_yet"),
        ({"activity": INPUT}, Verdict.WAITING_USER, "at_a_prompt"),
        ({"activity": DEBUGGER, "context_seen": False}, Verdict.WAITING_USER, "at_a_prompt"),
        ({"activity": RUNNING}, Verdict.HOST_BUSY, "cell_runs"),
        ({"activity": RUNNING, "context_seen": False}, Verdict.HOST_BUSY, "cell_runs"),
        ({"host_works": True}, Verdict.HOST_BUSY, "host_works"),
        ({"host_works": True, "activity": INPUT}, Verdict.HOST_BUSY, "host_works"),
        ({"activity": UNSEEN}, Verdict.UNKNOWN, "kernel_unseen"),
        (BUSY, Verdict.ACTIVE, "uses_it"),
        (BUSY | {"activity": DEBUGGER}, Verdict.ACTIVE, "uses_it"),
        (BUSY | {"activity": UNSEEN}, Verdict.ACTIVE, "uses_it"),
        (BUSY | {"spinning_ms": 9 * MINUTE}, Verdict.ACTIVE, "uses_it"),
        (BUSY | {"spinning_ms": 10 * MINUTE}, Verdict.SUSPECT, "spins"),
        ({"was": Verdict.ACTIVE, "quiet_ms": 9_999}, Verdict.ACTIVE, "used_it_just_now"),
        ({"was": Verdict.ACTIVE, "quiet_ms": 10_000}, Verdict.IDLE, "at_rest"),
        ({"was": Verdict.IDLE, "quiet_ms": 9_999}, Verdict.IDLE, "at_rest"),
        ({"listens": True, "bursts": 2}, Verdict.SERVING, "serves"),
        ({"listens": True, "bursts": 2, "activity": RUNNING}, Verdict.SERVING, "serves"),
        ({"listens": True, "bursts": 1}, Verdict.IDLE, "at_rest"),
        ({"listens": False, "bursts": 9}, Verdict.IDLE, "at_rest"),
        ({"listens": None, "bursts": 2}, Verdict.SERVING, "serves"),
        ({"listens": None, "bursts": 1}, Verdict.IDLE, "at_rest"),
        (BLIND, Verdict.UNKNOWN, "out_of_sight"),
        (BLIND | {"activity": INPUT}, Verdict.UNKNOWN, "out_of_sight"),
        (BLIND | {"blind_ms": 59_999}, Verdict.IDLE, "missed"),
        (BLIND | {"blind_ms": 0, "was": Verdict.UNKNOWN}, Verdict.UNKNOWN, "out_of_sight"),
        (
            BLIND | {"activity": INPUT, "host_decides": True},
            Verdict.WAITING_USER,
            "host_alone",
        ),
        (BLIND | {"activity": IDLE, "host_decides": True}, Verdict.UNKNOWN, "out_of_sight"),
        (
            BLIND | {"activity": INPUT, "host_decides": True, "host_quiet_ms": None},
            Verdict.UNKNOWN,
            "out_of_sight",
        ),
        (
            BLIND | {"activity": INPUT, "host_decides": True, "host_works": True},
            Verdict.UNKNOWN,
            "out_of_sight",
        ),
    ],
)
def test_the_first_rule_that_applies_decides(
    seen: dict[str, Any], verdict: Verdict, rule: str
) -> None:
    ruling = judge(replace(QUIET, **seen))
    assert (ruling.verdict, ruling.rule) == (verdict, rule)


@pytest.mark.parametrize(
    ("seen", "for_ms"),
    [
        ({}, 20 * MINUTE),
        ({"spell_ms": MINUTE}, MINUTE),
        ({"activity": RUNNING, "spell_ms": 3 * MINUTE}, 3 * MINUTE),
        ({"listens": True, "bursts": 2, "spell_ms": 60 * MINUTE}, 20 * MINUTE),
        (BUSY, 0),
        (BUSY | {"was": Verdict.ACTIVE, "was_for_ms": 7}, 7),
        (BUSY | {"spinning_ms": 11 * MINUTE}, 11 * MINUTE),
        (BLIND | {"blind_ms": 1}, MINUTE),
        (BLIND | {"activity": INPUT, "host_decides": True, "spell_ms": 5}, 5),
    ],
)
def test_a_verdict_lasts_since_what_it_rests_on_began(seen: dict[str, Any], for_ms: int) -> None:
    assert judge(replace(QUIET, **seen)).for_ms == for_ms


def test_a_missing_number_of_the_device_is_never_rest() -> None:
    """No way leads from an unknown use to a verdict that can be held against the holder, but the one a site chose."""
    for activity in Activity:
        for verdict in (Verdict.UNKNOWN, Verdict.ACTIVE):
            seen = replace(QUIET, is_busy=None, activity=activity, was=verdict)
            assert judge(seen).verdict in (Verdict.UNKNOWN, verdict)


evidences = st.builds(
    Evidence,
    **{
        name: st.integers(0, 10**12)
        for name in (
            "at_ms", "was_for_ms", "settle_ms", "patience_ms", "suspect_ms", "quiet_ms", "blind_ms", "spinning_ms", "bursts",
            "spell_ms",
        )
    },
    host_quiet_ms=st.none() | st.integers(0, 10**12),
    source=st.none() | st.text(max_size=9),
    listens=st.sampled_from([None, True, False]),
    is_busy=st.sampled_from([None, True, False]),
)  # fmt: skip


@given(evidences)
def test_what_is_kept_as_plain_values_decides_the_same_again(seen: Evidence) -> None:
    kept = json.loads(json.dumps(to_values(seen)))
    assert replay(kept) == judge(seen)


@pytest.mark.parametrize("change", [{"was": "asleep"}, {"colour": 1}, {"activity": None}])
def test_what_is_no_evidence_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no evidence|not a valid"):
        replay(to_values(QUIET) | change)
    with pytest.raises(ValueError, match="no evidence"):
        replay({})


def test_every_rule_says_in_both_languages_what_it_rests_on() -> None:
    names = {field.name for field in fields(Evidence)}
    for rule in RULES:
        for text in SENTENCES[f"rule_{rule.name}"]:
            asked = {name for _, name, _, _ in string.Formatter().parse(text) if name}
            assert asked <= names
