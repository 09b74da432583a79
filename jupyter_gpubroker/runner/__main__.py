"""`python -m jupyter_gpubroker.runner`: started by `gpubroker submit`; its first line of output says which runner serves."""

from __future__ import annotations

import argparse
import asyncio
import logging
import logging.handlers
import os
import sys
import uuid

import msgspec

from ..client import AsyncBrokerClient, Places
from ..client.start import ensure_broker
from .link import Link
from .runner import LINGER_S, Runner
from .spool import Spool
from .start import Announcement, RunnerLock, take_or_find

LOG_BYTES_MAX = 1_000_000


def main() -> None:
    """Become the user's runner, or name the one that is there."""
    parser = argparse.ArgumentParser(prog="python -m jupyter_gpubroker.runner", description=__doc__)
    parser.add_argument("--detach", action="store_true", help="go on as a daemon")
    parser.add_argument("--url", help="the broker to serve (default: as every client finds it)")
    parser.add_argument(
        "--linger-s", type=float, default=LINGER_S, help="how long to stay without jobs"
    )
    arguments = parser.parse_args()
    if arguments.detach and os.fork():
        os._exit(0)
    places = Places.find(url=arguments.url)
    places.prepare()
    found = take_or_find(places.runtime)
    if isinstance(found, Announcement):
        _say(found)
        return
    handler = logging.handlers.RotatingFileHandler(
        places.runner_log, maxBytes=LOG_BYTES_MAX, backupCount=1
    )
    logging.basicConfig(
        handlers=[handler],
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    asyncio.run(_serve(places, found, arguments.linger_s))


async def _serve(places: Places, lock: RunnerLock, linger_s: float) -> None:
    async with AsyncBrokerClient(ensure_broker(places)) as broker:
        link = Link(broker, places, uuid.uuid4().hex)
        await link.register()
        announcement = Announcement(link.session_id, os.getpid(), places.url)
        lock.announce(announcement)
        _say(announcement)
        await Runner(link, Spool(places.state), places.runtime, lock, linger_s).run()


def _say(announcement: Announcement) -> None:
    """Answer whoever waits at the other end of standard output, and let go of it."""
    sys.stdout.buffer.write(msgspec.json.encode(announcement) + b"\n")
    sys.stdout.buffer.flush()
    os.dup2(os.open(os.devnull, os.O_RDWR), sys.stdout.fileno())


if __name__ == "__main__":
    main()
