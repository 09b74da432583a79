"""A policy file is taken as a whole or refused with the line to write instead."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.broker.policy_file import PolicyRefused, parse_duration, parse_policy
from jupyter_gpubroker.core.model import State
from jupyter_gpubroker.core.rules import GENTLE, FaultRule, Limits, Policy, Queue, Remedy, Tier

STATE = State()


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("500ms", 500),
        ("90s", 90_000),
        ("30m", 1_800_000),
        ("1h30m", 5_400_000),
        ("1 h 30 min", 5_400_000),
        ("2d", 172_800_000),
    ],
)
def test_durations_carry_their_unit(text: str, expected_ms: int) -> None:
    assert parse_duration(text, "x") == expected_ms


@pytest.mark.parametrize("text", ["30", "-1h", "", "h", "1x", 30, None, True, "400d", "٣s"])
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(PolicyRefused, match="x = "):
        parse_duration(text, "x")


def test_rows_keep_what_the_file_does_not_name() -> None:
    applied = parse_policy(
        """
        [policies.gentle]
        idle = "2s"
        [policies.mine]
        notice = "1s"
        keeps_max = 0
        [queues.night]
        tier = "scavenger"
        preemptible = true
        [queues.interactive]
        policy = "mine"
        [limits]
        ack = "1s"
        job_attempts_max = 2
        """,
        STATE,
    )
    gentle, mine = applied.policies
    assert gentle == Policy(
        "gentle",
        2_000,
        *[
            getattr(GENTLE, name)
            for name in ("notice_ms", "never_used_ms", "host_busy_ms", "keep_ms", "keeps_max")
        ],
    )
    assert (mine.name, mine.notice_ms, mine.keeps_max, mine.idle_ms) == (
        "mine",
        1_000,
        0,
        GENTLE.idle_ms,
    )
    assert applied.queues == (
        Queue("night", Tier.SCAVENGER, None, preemptible=True),
        Queue("interactive", Tier.INTERACTIVE, "mine"),
    )
    assert applied.limits == Limits(ack_ms=1_000, job_attempts_max=2)


def test_an_empty_policy_name_takes_a_queue_out_of_idleness() -> None:
    (interactive,) = parse_policy('[queues.interactive]\npolicy = ""', STATE).queues
    assert interactive.policy is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '[policies.gentle]\nidel = "2s"',
            "policies.gentle has no key 'idel'. Did you mean 'idle'",
        ),
        ('[limit]\nack = "1s"', "the policy file has no key 'limit'. Did you mean 'limits'"),
        ('[queues.x]\npolicy = "gentle"', "needs a tier"),
        ('[queues.x]\ntier = "bach"', "Did you mean 'batch'"),
        ('[queues.interactive]\npolicy = "gentel"', "Did you mean 'gentle'"),
        ("[queues.interactive]\npreemptible = 1", "true or false"),
        ("[policies.gentle]\nidle = 30", 'with quotes: "30m"'),
        ("[policies.gentle]\nkeeps_max = -1", "whole number"),
        ("[policies.gentle]\nkeeps_max = true", "whole number"),
        ("policies = 3", "must be a table"),
        ('[policies."a b"]\nidle = "1s"', "not a name"),
        ("[policies", "not TOML"),
        ("#" * 70_000, "longer than"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_next_step(text: str, sentence: str) -> None:
    with pytest.raises(PolicyRefused) as refused:
        parse_policy(text, STATE)
    assert sentence in str(refused.value)


def test_what_a_fault_means_is_a_row_too() -> None:
    applied = parse_policy(
        '[faults.xid-79]\nremedy = "ignore"\n[faults.xid-500]\nprobation = "2h"', State()
    )
    assert applied.faults == (
        FaultRule("xid-79", Remedy.IGNORE),
        FaultRule("xid-500", Remedy.DRAIN, 7_200_000),
    )


def test_a_site_may_let_the_host_decide_where_the_gpu_tells_nothing() -> None:
    text = '[policies.gentle]\nhost_decides = true\nserving = "1h"\ngrace = "1h"'
    (gentle,) = parse_policy(text, State()).policies
    assert (gentle.host_decides, gentle.serving_ms, gentle.grace_ms) == (True, 3_600_000, 3_600_000)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[policies.gentle]\nhost_decides = 1", "is true or false"),
        ("[faults.xid79]\nremedy = 'drain'", 'Write "xid-79"'),
        ("[faults.ecc]\nremedy = 'reste'", "Did you mean 'reset'"),
    ],
)
def test_a_wrong_row_of_these_is_refused_with_the_next_step(text: str, sentence: str) -> None:
    with pytest.raises(PolicyRefused, match=sentence):
        parse_policy(text, State())
