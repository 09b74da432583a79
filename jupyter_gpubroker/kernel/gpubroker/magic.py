"""`%gpu`: words to acts. Mistakes and refusals are one sentence each; nothing here is ever a traceback."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from . import arguments, render
from .errors import Interrupted, Refused, Unavailable
from .runtime import current
from .sentences import say
from .telling import tell

_KEYS = {"p": "parked", "c": "checkpointed", "r": "restarted"}


def gpu(line: str) -> None:
    """Lend me a GPU: `%gpu help` says what there is."""
    verb, words = arguments.split(line)
    try:
        text = _ACTS[verb](words)
    except Unavailable as error:
        text = str(error)
    except KeyboardInterrupt as error:
        raise Interrupted(str(error) or say("interrupted")) from None
    if text:
        tell(text)


def _request(words: List[str]) -> str:
    current().request(arguments.request(words))
    return ""


def _keep(words: List[str]) -> str:
    return current().keep(arguments.keep(words))


def _release(words: List[str]) -> str:
    kind, is_sure = arguments.release(words)
    runtime = current()
    if kind is None:
        try:
            return runtime.release(None)
        except Refused as error:
            if error.code != "context_alive":
                raise
            tell(str(error))
        kind = _KEYS.get(_answer("ask_choice"))
        if kind is None:
            return say("nothing_done")
    if kind == "restarted":
        tell(runtime.losses())
        if not is_sure and _answer("ask_restart") not in ("y", "yes", "s", "si", "sí"):
            return say("nothing_done")
    return runtime.release(kind)


def _park(words: List[str]) -> str:
    arguments.none(words)
    return current().release("parked")


def _policy(words: List[str]) -> str:
    consent = arguments.policy(words)
    return current().questions.policy() if consent is None else current().consent_restart(consent)


def _plain(act: Callable[[Any], str]) -> Callable[[List[str]], str]:
    """A verb that takes nothing."""

    def run(words: List[str]) -> str:
        arguments.none(words)
        return act(current())

    return run


def _doctor(words: List[str]) -> str:
    from .checks import checks

    arguments.none(words)
    return render.checks(checks())


def _help(_words: List[str]) -> str:
    return say("help")


def _answer(question: str) -> str:
    """What the user types; nothing where there is nobody to ask."""
    try:
        return input(say(question)).strip().lower()
    except (EOFError, RuntimeError, OSError):
        # ipykernel raises a RuntimeError of its own where the front end allows no input.
        return ""


_ACTS: Dict[str, Callable[[List[str]], str]] = {
    "status": _plain(lambda runtime: runtime.questions.status()),
    "request": _request,
    "keep": _keep,
    "release": _release,
    "park": _park,
    "unpark": _plain(lambda runtime: runtime.unpark()),
    "why": _plain(lambda runtime: runtime.questions.why()),
    "policy": _policy,
    "queue": _plain(lambda runtime: runtime.questions.queue()),
    "restart": _plain(lambda runtime: runtime.restart()),
    "restore": _plain(lambda runtime: runtime.restore()),
    "doctor": _doctor,
    "help": _help,
}
