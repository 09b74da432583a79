"""What users call, from Python and behind `%gpu`: request, keep, release, park, and the questions.

Everything is harmless without a broker: one plain sentence, and the notebook goes on. What cannot be done raises Refused.
The process' own part (devices, memory, waiting) is in `runtime`; nothing here starts a thread or decides for the broker.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, NamedTuple, Optional, Tuple, TypeVar

from . import arguments, quantities, render
from .errors import Interrupted, Unavailable
from .runtime import current
from .sentences import say
from .telling import tell

Result = TypeVar("Result")


class Lease(NamedTuple):
    """A GPU or slice that this process holds."""

    id: str
    slots: Tuple[str, ...]
    models: Tuple[str, ...]
    memory_mib: int
    is_simulated: bool

    def __repr__(self) -> str:
        return f"<Lease {render.what({**self._asdict(), 'simulated': self.is_simulated})}>"


def _harmless(function: Callable[..., Result]) -> Callable[..., Optional[Result]]:
    """Where there is nobody to ask, say so and answer None. An interrupt is one sentence, too."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Optional[Result]:
        try:
            return function(*args, **kwargs)
        except Unavailable as error:
            tell(str(error))
            return None
        except KeyboardInterrupt as error:
            raise Interrupted(str(error) or say("interrupted")) from None

    return call


@_harmless
def request(
    count: int = 1,
    *,
    slice: Optional[str] = None,  # noqa: A002 - the word of the product
    memory: Optional[str] = None,
    model: Optional[str] = None,
    duration: Optional[str] = None,
    wait: Any = None,
    queue: str = "interactive",
) -> Lease:
    """Get `count` GPUs, or one slice (`slice="1g.18gb"` or `memory="20G"`), waiting in line if need be.

    `wait` is a duration such as "10m", or False to get one now or never; `duration` is how long it is needed. Interrupting
    leaves the line at once. Raises Refused when it cannot be had; answers None where there is no broker.
    """
    wanted = arguments.wanted(count, slice, memory, model, duration, wait, queue)
    return _lease(current().request(wanted))


async def arequest(
    count: int = 1,
    *,
    slice: Optional[str] = None,  # noqa: A002 - the word of the product
    memory: Optional[str] = None,
    model: Optional[str] = None,
    duration: Optional[str] = None,
    wait: Any = None,
    queue: str = "interactive",
) -> Optional[Lease]:
    """The same as `request` for `await`: widgets stay alive meanwhile. Cancelling leaves the line."""
    wanted = arguments.wanted(count, slice, memory, model, duration, wait, queue)
    try:
        return _lease(await current().arequest(wanted))
    except Unavailable as error:
        tell(str(error))
        return None


@contextlib.contextmanager
def lease(count: int = 1, **options: Any) -> Iterator[Optional[Lease]]:
    """`with gpubroker.lease(): ...` requests at the start and gives back at the end, unless it was held before."""
    held_before = _held_now()
    got = request(count, **options) if held_before is None else held_before
    try:
        yield got
    finally:
        if held_before is None and got is not None:
            release()


@_harmless
def release(kind: Optional[str] = None) -> None:
    """Give the GPU back: `empty` where nothing of this process is on it, else by the `kind` named.

    Kinds: "parked" (memory waits on the host and returns), "checkpointed" (the driver does it), "restarted" (the kernel
    restarts; what can be saved is). Without a kind nothing is lost: where a context lives the GPU stays, and the ways are told.
    """
    tell(current().release(kind))


@_harmless
def keep(duration: Optional[str] = None) -> None:
    """Hold on to an idle GPU for a while, against the notice."""
    tell(current().keep(None if duration is None else quantities.duration_ms(duration)))


@_harmless
def park() -> None:
    """Move GPU memory to the host and give the GPU back; it returns before the next cell that is not `%gpu`."""
    tell(current().release("parked"))


@_harmless
def unpark() -> None:
    """Get a parked GPU back now."""
    tell(current().unpark())


@_harmless
def status() -> None:
    """What this kernel holds or waits for, and what is free."""
    tell(current().questions.status())


@_harmless
def why() -> None:
    """Why things are as they are: the decisions about this kernel's GPU, with their numbers."""
    tell(current().questions.why())


@_harmless
def queue() -> None:
    """Who waits, in order."""
    tell(current().questions.queue())


@_harmless
def policy() -> None:
    """The rules this kernel's GPU is lent by."""
    tell(current().questions.policy())


@_harmless
def consent_restart(consent: bool = True) -> None:
    """Allow (or forbid) that an idle GPU is taken back by restarting the kernel; says first what would be lost."""
    tell(current().consent_restart(consent))


@_harmless
def restart() -> None:
    """Restart the kernel and keep the lease: for a process that looked for a GPU before it had one."""
    tell(current().restart())


@_harmless
def restore() -> None:
    """Bring back the variables that were saved before a restart."""
    tell(current().restore())


def doctor() -> bool:
    """Check from inside of the kernel what must be right, and say what is not. True when all is well."""
    from .checks import checks

    found = checks()
    tell(render.checks(found))
    return all(check.ok for check in found)


def help() -> None:  # noqa: A001 - the word users look for
    """What `%gpu` understands."""
    tell(say("help"))


def _lease(view: Any) -> Lease:
    return Lease(
        view["id"],
        tuple(view["slots"]),
        tuple(view["models"]),
        view["memory_mib"],
        view["simulated"],
    )


def _held_now() -> Optional[Lease]:
    try:
        held = current().held()
    except Unavailable:
        return None
    return None if held is None else _lease(held)
