"""Every reason has a sentence in both languages, and the sentence uses what the reason says."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import jupyter_gpubroker
from jupyter_gpubroker.core.catalogue import SENTENCES, WORDS
from jupyter_gpubroker.core.explain import (
    Language,
    duration,
    explain,
    job_sentence,
    lease_sentence,
    memory,
    request_sentence,
    sentence,
)
from jupyter_gpubroker.core.model import (
    Activity,
    GiveBackKind,
    JobOutcome,
    Reason,
    SlotSpec,
    Verdict,
)
from tests.support.core_world import MINUTE, World, inventory, whole

PACKAGE = Path(jupyter_gpubroker.__file__).parent
RAW_WORDS = ("draining", "quarantin", "suspect", "host_busy", "waiting_user", "never_used")
# What goes wrong before anything is decided has its sentences with the API.
API = PACKAGE / "broker" / "api"


@cache
def reasons_given() -> tuple[tuple[str, frozenset[str], str], ...]:
    return tuple(find_reasons())


def find_reasons() -> Iterator[tuple[str, frozenset[str], str]]:
    """Each `Reason.of("code", name=...)`, `reason("code", ...)` and `ReasonBody("code", {...})`: code, names, place."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if API in path.parents or path.name == "loop.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _gives_reason(node.func) and node.args:
                code = node.args[0]
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield code.value, _names(node), f"{path.relative_to(PACKAGE)}:{node.lineno}"


def _gives_reason(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        return ast.unparse(called) == "Reason.of"
    return isinstance(called, ast.Name) and called.id in (
        "ReasonBody",
        "reason",
        "Refusal",
        "DriverError",
    )


def _names(call: ast.Call) -> frozenset[str]:
    names = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    for argument in call.args[1:]:
        if isinstance(argument, ast.Dict):
            names |= {key.value for key in argument.keys if isinstance(key, ast.Constant)}  # type: ignore[misc]
    return frozenset(names)


def placeholders(text: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in string.Formatter().parse(text) if name)


def test_codes_are_found() -> None:
    assert len({code for code, _, _ in reasons_given()}) > 80


def test_every_code_that_is_given_has_its_sentences() -> None:
    assert {(code, place) for code, _, place in reasons_given() if code not in SENTENCES} == set()


def test_sentences_ask_only_for_what_the_core_gives() -> None:
    missing = {
        (code, place, name)
        for code, names, place in reasons_given()
        if place.startswith("core") and code in SENTENCES
        for name in placeholders(SENTENCES[code][0]) - names
    }
    assert missing == set()


@pytest.mark.parametrize("code", SENTENCES)
def test_both_languages_say_the_same_numbers(code: str) -> None:
    english, spanish = SENTENCES[code]
    assert placeholders(english) == placeholders(spanish)
    assert english != spanish
    assert english[0].isupper() or english.startswith("{")
    assert english.endswith((".", ")"))
    assert spanish.endswith((".", ")"))


@pytest.mark.parametrize(
    ("name", "members"),
    [("verdict", Verdict), ("kind", GiveBackKind), ("outcome", JobOutcome), ("activity", Activity)],
)
def test_every_word_of_the_core_has_peoples_words(name: str, members: type[Verdict]) -> None:
    assert set(WORDS[name]) == {member.value for member in members}


def test_no_raw_word_is_shown() -> None:
    texts = [text for pair in SENTENCES.values() for text in pair]
    texts += [text for words in WORDS.values() for pair in words.values() for text in pair]
    assert not [text for text in texts if any(word in text.lower() for word in RAW_WORDS)]


def test_a_sentence_shows_durations_memory_and_words_as_people_do() -> None:
    reason = Reason.of("taken", verdict="waiting_user", idle_ms=30 * MINUTE)
    english, spanish = sentence(reason)
    assert english == (
        "Its notebook or job had been waiting at a prompt or breakpoint for 30 min, and somebody waited for the GPU."
    )
    assert "30 min" in spanish
    assert "esperando" in spanish
    memory_reason = Reason.of("memory_in_use", memory_mib=1_536, floor_mib=64)
    assert "1.5 GiB" in explain(memory_reason, Language.ENGLISH)


def test_an_unknown_code_and_a_missing_value_are_no_errors() -> None:
    assert (
        explain(Reason.of("from_the_future", x=1), Language.ENGLISH) == "Reason: from_the_future."
    )
    assert "desconocido" in explain(Reason.of("wait_over"), Language.SPANISH)


def test_braces_in_a_value_are_only_text() -> None:
    reason = Reason.of("unknown_profile", profile="{0.__class__}", available="<b>")
    assert "{0.__class__}" in explain(reason, Language.ENGLISH)


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 s"), (400, "0.4 s"), (1_000, "1 s"), (61_000, "1 min 1 s"), (3_600_000, "1 h"),
     (7_500_000, "2 h 5 min"), (90_061_000, "1 d 1 h"), (86_400_000, "1 d"), (3_601_000, "1 h")],
)  # fmt: skip
def test_durations(ms: int, text: str) -> None:
    assert duration(ms) == text


@pytest.mark.parametrize(
    ("mib", "text"),
    [(0, "0 MiB"), (512, "512 MiB"), (1_536, "1.5 GiB"), (143_771, "140 GiB")],
)
def test_memory(mib: int, text: str) -> None:
    assert memory(mib) == text


# --- how things stand -------------------------------------------------------------------------------------------------


def test_a_lease_says_how_it_stands_through_the_whole_story() -> None:
    world = World().devices(whole(0))
    world.session("k")
    lease_id = world.asks("k")

    def says() -> str:
        return lease_sentence(world.state, world.lease(lease_id), world.now)[0]

    assert says() == "Granted: NVIDIA H200 (140 GiB). The process has 15 s to confirm it."
    world.applies(lease_id)
    assert "cannot be seen now" in says()
    world.says("k", Activity.IDLE)
    world.offers("k", GiveBackKind.EMPTY)
    world.wait(MINUTE)
    assert "After 15 min of this" in says()
    world.session("next")
    world.asks("next")
    world.wait(15 * MINUTE)
    assert "%gpu keep" in says()
    world.keeps(lease_id)
    assert says().endswith("It is kept for 30 min more.")
    world.wait(31 * MINUTE)
    world.sees_notice(lease_id)
    world.wait(5 * MINUTE)
    assert says().startswith(
        "Being given back by letting go of the unused device: NVIDIA H200 (140 GiB). Its notebook or job had been"
    )
    world.answers(lease_id)
    assert "is being checked" in says()
    world.look()
    assert (
        says() == "Given back by letting go of the unused device: NVIDIA H200 (140 GiB)."  # once
    )


def test_a_request_says_what_it_waits_for() -> None:
    world = World()
    world.session("a")
    world.session("b")
    first = world.asks("a")

    def says(request_id: str) -> str:
        return request_sentence(world.state, world.request(request_id), world.now)[0]

    assert "is looking at the devices" in says(first)
    world.devices(whole(0))
    assert says(first) == "The GPU was granted after a wait of 0 s."
    world.applies(first)
    second = world.asks("b")
    assert says(second).startswith("Waiting at place 1 of 1. Nobody can say")
    world.do(inventory(whole(0), sick=["GPU-0"]))
    assert "can be used at present" in says(second)
    world.restarts("b")
    assert "restart" in says(second)


def test_a_waiter_is_told_when_an_idle_holder_cannot_give_back() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.session("next")
    waiting = world.asks("next")
    world.wait(45 * MINUTE)
    told = request_sentence(world.state, world.request(waiting), world.now)[0]
    assert "cannot give it back now" in told
    assert told.count("no way to give it back") == 1, (
        "it is the waiter's own lease, so he is told why"
    )


def test_a_job_says_how_it_stands() -> None:
    world = World().devices(whole(0))
    job_id = world.submits(world.runner(), "job", SlotSpec(), time_limit_ms=60 * MINUTE)

    def says() -> str:
        return job_sentence(world.state, world.job(job_id), world.now)[0]

    assert "The runner starts the job" in says()
    world.job_starts(job_id)
    world.wait(MINUTE)
    assert says() == "The job has been running for 1 min of at most 1 h."
    world.cancels_job(job_id)
    assert (
        says()
        == "The job was asked to stop; it is killed in 30 s if it does not. The job was cancelled."
    )
    world.job_ends(job_id, -15)
    assert says() == "The job was cancelled (ended by signal 15)."


def test_a_job_that_reached_its_limit_says_so_once_and_with_the_advice() -> None:
    world = World().devices(whole(0))
    job_id = world.submits(world.runner(), "job", SlotSpec(), time_limit_ms=MINUTE)
    world.job_starts(job_id)
    world.wait(2 * MINUTE)
    world.job_ends(job_id, -15)
    said = job_sentence(world.state, world.job(job_id), world.now)[0]
    assert said == (
        "The job reached its time limit of 1 min and was stopped. Submit it with a longer --time."
    )
