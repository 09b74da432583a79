"""Makes sure that a broker answers: finds one, or starts the user's own, detached and once; ends one.

Whoever holds the start lock starts; the others wait for it and then find what it started. The broker says over a pipe
when it listens; if it dies before, the last line of its log is the reason given. It gets a scrubbed environment, so that
marks of the notebook or job it was started from are not inherited. A configured or machine-wide broker that does not
answer is down, and no other is started beside it. One of the user's own that simulates other GPUs than GPUBROKER_SIMULATE
asks for is replaced where nobody uses it. One that ends badly again and again is started after growing pauses (`starts`).
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import math
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from ..wire import routes
from ..wire.bodies import StopBody
from ..wire.views import HealthView, StoppedView
from . import simulation
from .errors import BrokerDown, BrokerError
from .http import BrokerClient
from .places import Places
from .starts import Starts

START_S = 15.0
STOP_S = 10.0
HEALTH_S = 4.0
_POLL_S = 0.05
_FREE_BYTES_MIN = 64 * 1024
_NAMES = "PATH HOME USER LOGNAME LANG LANGUAGE TZ TMPDIR LD_LIBRARY_PATH GPUBROKER_SIMULATE GPUBROKER_POLICY"
_PASSED = frozenset(_NAMES.split())
_PASSED_PREFIXES = ("LC_", "XDG_")


def ensure_broker(places: Places | None = None, *, environ: Mapping[str, str] | None = None) -> str:
    """The URL of a broker that answers. Raises BrokerDown, or PlaceRefused when its places are unfit.

    `environ` (by default ours) is what a new broker may inherit from, and where the places are found if not given.
    """
    environ = os.environ if environ is None else environ
    places = Places.find(environ) if places is None else places
    wish = _wish_of(places, environ)
    if not _serves(places.url, wish):
        if not places.may_start:
            raise BrokerDown(
                f"The broker configured at {places.url} does not answer. "
                "Start it, or unset GPUBROKER_URL to use one of your own."
            )
        places.prepare()
        deadline = time.monotonic() + START_S
        with _start_lock(places, deadline):
            if not _found(places, deadline) or _made_way(places.url, wish):
                _start(places, environ, deadline)
    if wish is not None:
        _brought_forward.add((places.url, wish))
    return places.url


async def ensure_broker_async(places: Places) -> str:
    """`ensure_broker` without blocking the event loop."""
    return await asyncio.to_thread(ensure_broker, places)


def answers(url: str) -> bool:
    """Is a broker there now? One that hangs, or whose identity is doubtful, raises BrokerDown."""
    if url.startswith("unix://") and not Path(url.removeprefix("unix://")).exists():
        return False
    with BrokerClient(url, answer_s=HEALTH_S) as client:
        try:
            client.call(routes.HEALTH)
        except BrokerDown as error:
            if _is_absence(error):
                return False
            raise
        return True


def _is_absence(error: BrokerDown) -> bool:
    """Whether nobody was there, rather than one that hangs or is not to be trusted."""
    return isinstance(error.__cause__, httpx.NetworkError | httpx.ProtocolError)


def stop_broker(url: str, *, force: bool = False, unless_attended: bool = False) -> StoppedView:
    """Tell the broker to end, and wait until it has. Raises BrokerError where it is in use, unless forced; BrokerDown.

    `unless_attended` spares it for anybody who is there, too, and not only for what is held or wanted.
    """
    with BrokerClient(url, answer_s=HEALTH_S) as client:
        try:
            pidfd = os.pidfd_open(client.call(routes.HEALTH).pid)
        except ProcessLookupError as error:
            raise BrokerDown("The broker has just ended by itself.") from error
        try:
            stopped = client.call(routes.STOP, body=StopBody(force, unless_attended))
            if not select.select([pidfd], [], [], STOP_S)[0]:
                raise BrokerDown(
                    f"The broker (process {stopped.pid}) was told to end but did not in time."
                )
        finally:
            os.close(pidfd)
    return stopped


# Wishes that this process has brought forward, and that were met or refused: two servers with different ones must not
# replace each other's broker for ever.
_brought_forward: set[tuple[str, str | None]] = set()


def _wish_of(places: Places, environ: Mapping[str, str]) -> str | None:
    """What the broker should simulate, None where that is nobody's concern (any more)."""
    wish = simulation.wished(environ) if places.may_start else None
    return None if (places.url, wish) in _brought_forward else wish


def _serves(url: str, wish: str | None) -> bool:
    """Whether a broker answers that has the GPUs wished for."""
    try:
        return answers(url) and (wish is None or not simulation.contradicts(_looked(url), wish))
    except BrokerDown as error:  # it may end while it is looked at
        if _is_absence(error):
            return False
        raise


def _found(places: Places, deadline: float) -> bool:
    """Whether a broker answers; one that is just coming or going is waited for."""
    while not answers(places.url):
        if not _is_taken(places.lock):
            return False
        if time.monotonic() > deadline:
            raise BrokerDown(
                f"A broker holds {places.lock} but has not listened for too long. Its log is {places.log}."
            )
        time.sleep(_POLL_S)
    return True


def _is_taken(lock: Path) -> bool:
    """Whether a process holds the broker's lock."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _made_way(url: str, wish: str | None) -> bool:
    """Whether the broker that answers had other GPUs than wished for, and ended since nobody used it."""
    if _serves(url, wish):
        return False
    try:
        stop_broker(url, unless_attended=True)
    except BrokerError:  # in use
        return False
    except BrokerDown as error:
        if not isinstance(error.__cause__, ProcessLookupError):
            raise
    return True


def _looked(url: str) -> HealthView:
    """How the broker is once it has looked at the devices, or after a while."""
    deadline = time.monotonic() + HEALTH_S
    with BrokerClient(url, answer_s=HEALTH_S) as client:
        for health in client.watch(routes.HEALTH, wait_s=1):
            if health.ready or time.monotonic() > deadline:
                return health
    raise AssertionError("a watch never ends")


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """What a daemon may inherit: where things are, and no mark of the session, job or lease it was started from."""
    return {
        name: value
        for name, value in environ.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }


@contextmanager
def _start_lock(places: Places, deadline: float) -> Iterator[None]:
    with (places.runtime / "start.lock").open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BrokerDown(
                        "Another process has been starting the broker for too long. Try again."
                    ) from None
                time.sleep(_POLL_S)
        yield


def _start(places: Places, environ: Mapping[str, str], deadline: float) -> None:
    """Start the broker and wait until it listens. It forks away from us, so it never becomes our zombie."""
    _count(places)
    told, tells = os.pipe()
    try:
        with places.log.open("ab") as log:
            log_end = log.tell()
            starter = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "jupyter_gpubroker.broker",
                    "--detach",
                    f"--ready-fd={tells}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=scrubbed(environ),
                pass_fds=[tells],
                start_new_session=True,
            )
        os.close(tells)
        tells = -1
        is_there = bool(select.select([told], [], [], max(0.0, deadline - time.monotonic()))[0])
        if not is_there:
            raise BrokerDown(
                f"The broker was started but did not listen in time. Its log is {places.log}."
            )
        is_listening = os.read(told, 1) != b""
        starter.wait(timeout=5)
    finally:
        os.close(told)
        if tells >= 0:
            os.close(tells)
    if not is_listening and not answers(places.url):
        raise BrokerDown(f"The broker could not start: {_last_line(places.log, log_end)}")


def _count(places: Places) -> None:
    """One more start. Raises BrokerDown while the last ones were in vain and the next is not due."""
    starts = Starts(places.starts)
    pause_s = starts.pause_s
    if pause_s:
        raise BrokerDown(
            f"The broker was started {starts.in_vain} times and ended badly each time; it is started again in "
            f"{math.ceil(pause_s)} s at the earliest. Its last words in {places.log}: {_last_line(places.log, 0)}"
        )
    starts.add()


def _last_line(log: Path, since: int) -> str:
    """The last line written after position `since`, shortened; what a process that dies says comes last."""
    with log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - 4_096))
        lines = file.read().decode(errors="replace").strip().splitlines()
    if lines:
        return lines[-1][:500]
    disk = os.statvfs(log.parent)
    if disk.f_bavail * disk.f_frsize < _FREE_BYTES_MIN:  # what it said could not be written either
        return f"{os.strerror(errno.ENOSPC)}: {log.parent}. Free some space there and try again."
    return f"it said nothing. Its log is {log}."
