"""What stands behind `%gpu`: words and options into values, with one sentence for each mistake."""

from __future__ import annotations

import difflib
import shlex
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import quantities
from .errors import Refused
from .sentences import say

VERBS = (
    "status request keep release park unpark why policy queue restart restore doctor help"
).split()
REQUEST_OPTIONS = {
    "--slice": True,
    "--memory": True,
    "--model": True,
    "--for": True,
    "--wait": True,
    "--no-wait": False,
    "--queue": True,
}
RELEASE_OPTIONS = {"--park": False, "--checkpoint": False, "--restart": False, "--yes": False}
POLICY_OPTIONS = {"--restart": True}

_KINDS = {"--park": "parked", "--checkpoint": "checkpointed", "--restart": "restarted"}
_WORDS = {"yes": True, "on": True, "no": False, "off": False}


class Wanted(NamedTuple):
    """What a request asks for, as the broker takes it."""

    spec: Dict[str, Any]
    queue: str = "interactive"
    wait_ms: Optional[int] = None
    duration_ms: Optional[int] = None


def split(line: str) -> Tuple[str, List[str]]:
    """The verb, `status` where there is none, and the rest."""
    try:
        words = shlex.split(line)
    except ValueError:
        raise Refused(say("open_quote"), "bad_argument") from None
    verb = words[0] if words else "status"
    if verb not in VERBS:
        raise Refused(say("unknown_verb", text=verb, nearest=_nearest(verb, VERBS)), "bad_argument")
    return verb, words[1:]


def wanted(
    count: Any = 1,
    slice: Optional[str] = None,  # noqa: A002 - the word of the product
    memory: Optional[str] = None,
    model: Optional[str] = None,
    duration: Optional[str] = None,
    wait: Any = None,
    queue: str = "interactive",
) -> Wanted:
    """Values as users write them, checked. `wait` None is for ever, False not at all. Raises Refused."""
    if slice is not None and memory is not None:
        raise Refused(say("slice_or_memory"), "bad_argument")
    spec: Dict[str, Any] = {"count": quantities.slot_count(str(count))}
    if slice is not None:
        spec["profile"] = quantities.slice_profile(slice)
    if memory is not None:
        spec["memory_mib_min"] = quantities.memory_mib(memory)
    if model is not None:
        spec["model"] = model
    wait_ms = 0 if wait is False else None if wait is None else quantities.duration_ms(str(wait))
    duration_ms = None if duration is None else quantities.duration_ms(duration)
    return Wanted(spec, queue, wait_ms, duration_ms)


def request(words: Sequence[str]) -> Wanted:
    """The rest of `%gpu request`."""
    plain, options = _options(words, REQUEST_OPTIONS)
    if "--wait" in options and "--no-wait" in options:
        raise Refused(say("wait_or_not"), "bad_argument")
    return wanted(
        count=_at_most_one(plain, "1"),
        slice=options.get("--slice"),
        memory=options.get("--memory"),
        model=options.get("--model"),
        duration=options.get("--for"),
        wait=False if "--no-wait" in options else options.get("--wait"),
        queue=options.get("--queue", "interactive"),
    )


def keep(words: Sequence[str]) -> Optional[int]:
    """For how long, in ms; None for what the policy gives."""
    plain, _ = _options(words, {})
    text = _at_most_one(plain, "")
    return quantities.duration_ms(text) if text else None


def release(words: Sequence[str]) -> Tuple[Optional[str], bool]:
    """The kind that was named, if any, and whether questions are answered with yes."""
    plain, options = _options(words, RELEASE_OPTIONS)
    _at_most_one(plain, "", most=0)
    kinds = [_KINDS[name] for name in options if name in _KINDS]
    if len(kinds) > 1:
        raise Refused(say("one_kind"), "bad_argument")
    return (kinds[0] if kinds else None), "--yes" in options


def policy(words: Sequence[str]) -> Optional[bool]:
    """The consent to a restart that is given or taken back; None where nothing is to change."""
    plain, options = _options(words, POLICY_OPTIONS)
    _at_most_one(plain, "", most=0)
    if "--restart" not in options:
        return None
    if options["--restart"] not in _WORDS:
        raise Refused(say("yes_or_no", text=options["--restart"]), "bad_argument")
    return _WORDS[options["--restart"]]


def none(words: Sequence[str]) -> None:
    """Nothing may follow."""
    plain, _ = _options(words, {})
    _at_most_one(plain, "", most=0)


def _options(words: Sequence[str], known: Dict[str, bool]) -> Tuple[List[str], Dict[str, str]]:
    """Plain words, and options with their values. `known` tells which take one."""
    plain: List[str] = []
    found: Dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("--"):
            plain.append(word)
            continue
        name, has_value, value = word.partition("=")
        if name not in known:
            nearest = _nearest(name, list(known))
            raise Refused(say("unknown_option", text=name, nearest=nearest), "bad_argument")
        if name in found:
            raise Refused(say("option_twice", name=name), "bad_argument")
        if not known[name] and has_value:
            raise Refused(say("option_without_value", name=name), "bad_argument")
        if known[name] and not has_value:
            if not left:
                raise Refused(say("value_missing", name=name), "bad_argument")
            value = left.pop(0)
        found[name] = value
    return plain, found


def _at_most_one(plain: Sequence[str], default: str, most: int = 1) -> str:
    if len(plain) > most:
        raise Refused(say("too_many_words", text=plain[most]), "bad_argument")
    return plain[0] if plain else default


def _nearest(text: str, known: Sequence[str]) -> str:
    matches = difflib.get_close_matches(text, known, 1, 0.5)
    return say("did_you_mean", text=matches[0]) if matches else say("see_help")
