"""What users type and what they are told: quantities, arguments, sentences."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path
from typing import Any

import pytest

import gpubroker
from gpubroker import arguments, quantities
from gpubroker.english import ENGLISH
from gpubroker.errors import Refused
from gpubroker.sentences import of_view, say
from gpubroker.spanish import SPANISH
from gpubroker.telling import WIDTH, wrapped
from jupyter_gpubroker.core.catalogue import SENTENCES

PACKAGE = Path(gpubroker.__file__).parent


# --- quantities ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("2h", 7_200_000),
        ("0.5h", 1_800_000),
        ("1d", 86_400_000),
    ],
)
def test_durations_are_read(text: str, milliseconds: int) -> None:
    assert quantities.duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["30", "-1h", "h", "", "1w", "1m1m", "0s", "400d", "1h-", "١s"])
def test_durations_that_are_none_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(Refused, match="for example"):
        quantities.duration_ms(text)


@pytest.mark.parametrize(
    ("text", "mib"),
    [("20G", 20_480), ("20GiB", 20_480), ("512M", 512), ("1.5gb", 1_536), ("1T", 1_048_576)],
)
def test_sizes_are_read(text: str, mib: int) -> None:
    assert quantities.memory_mib(text) == mib


@pytest.mark.parametrize("text", ["20", "-1G", "G", "20X", "0M", "99T"])
def test_sizes_that_are_none_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(Refused, match="for example"):
        quantities.memory_mib(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 s"),
        (400, "0.4 s"),
        (9_999, "10 s"),
        (59_600, "1 min"),
        (61_000, "1 min 1 s"),
        (5_400_000, "1 h 30 min"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_durations_are_written_in_two_units(milliseconds: int, text: str) -> None:
    assert quantities.duration_text(milliseconds) == text


def test_long_lines_are_broken_between_words_and_never_inside_of_a_command() -> None:
    text = "word " * 17 + "`%gpu request` and\n  " + "more " * 20
    lines = wrapped(text).split("\n")
    assert max(map(len, lines)) <= WIDTH
    assert [line for line in lines if "`%gpu request`" in line]
    assert [line[:4] for line in lines[-2:]] == ["  mo", "    "]
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())


# --- arguments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", arguments.Wanted({"count": 1})),
        ("2", arguments.Wanted({"count": 2})),
        ("--slice 1g.18gb", arguments.Wanted({"count": 1, "profile": "1g.18gb"})),
        ("--slice=MIG-1g.18gb", arguments.Wanted({"count": 1, "profile": "1g.18gb"})),
        ("--memory 20G", arguments.Wanted({"count": 1, "memory_mib_min": 20_480})),
        ("--model 'H200 NVL'", arguments.Wanted({"count": 1, "model": "H200 NVL"})),
        ("2 --for 2h --no-wait", arguments.Wanted({"count": 2}, "interactive", 0, 7_200_000)),
        ("--wait 10m --queue gentle", arguments.Wanted({"count": 1}, "gentle", 600_000)),
    ],
)
def test_requests_are_read(line: str, wanted: arguments.Wanted) -> None:
    verb, words = arguments.split(f"request {line}")
    assert verb == "request"
    assert arguments.request(words) == wanted


BAD_LINES = {
    "request 0": "'0'",
    "request 1 2": "'2'",
    "request x": "'x'",
    "request --for": "--for needs",
    "request --for -1h": "'-1h'",
    "request --for 2": "no unit",
    "request --wait soon": "'soon'",
    "request --slice big": "'big'",
    "request --slice 1g.18gb --memory 2G": "either --slice or --memory",
    "request --wait 1m --no-wait": "not both",
    "request --no-wait=yes": "takes no value",
    "request --model a --model b": "twice",
    "request --modle a": "--model",
    "request --xyzzy": "help",
    "keep 30": "no unit",
    "keep 1h 2h": "'2h'",
    "release --park --restart": "one of",
    "release now": "'now'",
    "policy --restart maybe": "'maybe'",
    "park now": "'now'",
    "reqest": "request",
    "qqq": "help",
    "request 'a": "quotation",
}


READERS: dict[str, Any] = {
    "request": arguments.request,
    "keep": arguments.keep,
    "release": arguments.release,
    "policy": arguments.policy,
    "park": arguments.none,
}


def read(line: str) -> None:
    verb, words = arguments.split(line)
    READERS[verb](words)


@pytest.mark.parametrize("line", BAD_LINES)
def test_every_mistake_gets_one_sentence_with_the_next_step(line: str) -> None:
    with pytest.raises(Refused) as refused:
        read(line)
    assert BAD_LINES[line] in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


# --- sentences -----------------------------------------------------------------------------------------------------------


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_say_the_same() -> None:
    assert ENGLISH.keys() == SPANISH.keys()
    for code, sentence in ENGLISH.items():
        assert placeholders(sentence) == placeholders(SPANISH[code]), code


def calls(name: str) -> dict[str, set[str]]:
    """For each code given to `name("code", ...)` in the package, the names of its values."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if not is_call or node.func.id != name or not node.args:  # type: ignore[attr-defined]
                continue
            code = node.args[0]  # type: ignore[attr-defined]
            if isinstance(code, ast.Constant):
                names = {word.arg or "" for word in node.keywords}  # type: ignore[attr-defined]
                found.setdefault(str(code.value), set()).update(names)
    return found


def test_every_sentence_that_is_said_exists_and_gets_its_values() -> None:
    for code, values in calls("say").items():
        assert placeholders(ENGLISH[code]) <= values, code


def test_every_sentence_is_said_somewhere() -> None:
    source = "\n".join(
        path.read_text() for path in PACKAGE.glob("*.py") if path.stem not in ("english", "spanish")
    )
    prefixed = ("reason_", "kind_", "choice_", "keep_at_", "return_at_", "number_", "check_cuda_")
    assert not [
        code
        for code in ENGLISH
        if not code.startswith(prefixed) and f'"{code.removesuffix("_many")}"' not in source
    ]


def test_every_reason_has_a_sentence_here_and_in_the_broker() -> None:
    for code, values in calls("reason").items():
        if code != "save_failed":  # said by the broker alone
            assert placeholders(ENGLISH[f"reason_{code}"]) <= values, code
        for sentence in SENTENCES[code]:
            assert placeholders(sentence) <= values, code


def test_the_language_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    view = {"sentence": "So it is.", "sentence_es": "Así es."}
    assert (say("not_parked"), of_view(view)) == (ENGLISH["not_parked"], "So it is.")
    monkeypatch.setenv("LANG", "es_MX.UTF-8")
    assert (say("not_parked"), of_view(view)) == (SPANISH["not_parked"], "Así es.")
    monkeypatch.setenv("LC_ALL", "C")
    assert say("not_parked") == ENGLISH["not_parked"]


def test_the_help_names_every_verb() -> None:
    for text in (ENGLISH["help"], SPANISH["help"]):
        for verb in arguments.VERBS:
            assert verb == "status" or re.search(rf"\b{verb}\b", text), verb
