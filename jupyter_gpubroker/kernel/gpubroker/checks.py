"""What must be right for this kernel to borrow GPUs, looked at from inside; behind `%gpu doctor` and `gpubroker.doctor()`.

Each check is a name, whether it holds, and a sentence that says what to do where it does not. Later parts add to `CHECKS`.
"""

from __future__ import annotations

import os
from typing import Callable, List, NamedTuple

from . import cuda_state
from .environment import NAME
from .errors import Refused, Unavailable
from .runtime import Runtime, current
from .sentences import of_view, say


class Check(NamedTuple):
    name: str
    ok: bool
    sentence: str


def checks() -> List[Check]:
    """All checks that make sense here; the first only where this process borrows nothing."""
    try:
        runtime = current()
    except Unavailable as error:
        return [Check("managed", False, str(error))]
    return [Check("managed", True, say("check_managed")), *(check(runtime) for check in CHECKS)]


def _broker(runtime: Runtime) -> Check:
    try:
        health = runtime.session.broker.health()
    except (Unavailable, Refused) as error:
        return Check("broker", False, str(error))
    sentence = of_view(health, "mode_sentence")
    return Check(
        "broker", True, say("check_broker", version=health["version"], sentence=sentence).strip()
    )


def _devices(runtime: Runtime) -> Check:
    try:
        health = runtime.session.broker.health()
    except (Unavailable, Refused) as error:
        return Check("devices", False, str(error))
    if health["problem"] is not None:
        return Check("devices", False, of_view(health["problem"]))
    code = "check_devices_simulated" if health["simulated"] else "check_devices"
    return Check("devices", True, say(code))


def _session(runtime: Runtime) -> Check:
    session = runtime.session
    if session.view is None or session.problem is not None:
        return Check("session", False, session.problem or say("not_registered"))
    return Check("session", True, say("check_session"))


def _link(runtime: Runtime) -> Check:
    alive = runtime.link.is_alive
    return Check("link", alive, say("check_link" if alive else "check_link_dead"))


def _variable(runtime: Runtime) -> Check:
    value, lent = os.environ.get(NAME), runtime.devices.lent
    shown = list(filter(None, (value or "").split(",")))
    if not runtime.enforces or (value is not None and set(shown) <= set(lent)):
        return Check("variable", True, say("check_variable"))
    return Check("variable", False, say("check_variable_wrong", value=value, lent=",".join(lent)))


def _cuda(_runtime: Runtime) -> Check:
    state = cuda_state.look()
    ok = state.kind != cuda_state.BLIND
    sentence = say("check_cuda_" + state.kind) if ok else say("cuda_blind", library=state.by)
    return Check("cuda", ok, sentence)


def _hooks(runtime: Runtime) -> Check:
    missing = runtime.gates.missing
    if missing:
        return Check("hooks", False, say("check_hooks_missing", names=", ".join(missing)))
    return Check("hooks", True, say("check_hooks"))


CHECKS: tuple[Callable[[Runtime], Check], ...] = (
    _broker,
    _devices,
    _session,
    _link,
    _variable,
    _cuda,
    _hooks,
)
