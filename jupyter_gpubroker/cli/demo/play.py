"""Sets the stage, plays the stories at the same time, and clears the stage on every path."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from ...client import AsyncBrokerClient, BrokerDown, BrokerError, PlaceRefused, Places
from ...client.start import ensure_broker
from ...quantities import say_duration
from .notebook import Failed, JupyterServer
from .place import DemoPlace
from .report import Chapter, Report
from .scene import KEPT_STEPS, STEPS, Act, Scene
from .stories import CHECKPOINTED, EMPTY, KEPT, PARKED, Story
from .witness import Witness

WELCOME = (
    "gpubroker demo: real processes on simulated GPUs, in folders of their own. Four people work at the same time,\n"
    "each with a GPU that a batch job wants as well; their stories are told one after the other."
)
PLAYS: tuple[tuple[Story, Sequence[Act]], ...] = (
    (EMPTY, STEPS),
    (PARKED, STEPS),
    (CHECKPOINTED, STEPS),
    (KEPT, KEPT_STEPS),
)


def play(limit_s: float, as_json: bool) -> bool:
    """Play everything, for so long at most; whether every step happened. Clearing the stage takes some seconds more."""
    report = Report(as_json)
    with Interruption() as interruption:
        place = DemoPlace(",".join(f"1x{story.model}" for story, _ in PLAYS))
        try:
            asyncio.run(_play_or_stop(place, report, interruption, limit_s))
        except (Failed, BrokerDown, PlaceRefused, OSError) as error:
            report.missed("stage_set", str(error))
        finally:
            place.end()
    report.finish()
    return report.ok


class Interruption:
    """While it is open, signals that end programs cancel the play and nothing else: the stage is always cleared."""

    def __init__(self) -> None:
        self.was_asked = False
        self._before: dict[signal.Signals, Any] = {}
        self._cancel: Callable[[], object] | None = None

    def __enter__(self) -> Interruption:  # noqa: PYI034 - `Self` is for Python 3.11 on
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    async def cancels(self, playing: asyncio.Task[Any]) -> None:
        """Wait for the end of the play; a signal cancels it, also one that came before."""
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(playing.cancel)
        if self.was_asked:
            playing.cancel()
        try:
            await playing
        finally:
            self._cancel = None

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self.was_asked = True
        if self._cancel is not None:
            self._cancel()


async def _play_or_stop(
    place: DemoPlace, report: Report, interruption: Interruption, limit_s: float
) -> None:
    """A signal or the end of the time cancels the play; what has not happened by then has not happened."""
    playing = asyncio.create_task(_play(place, report))
    try:
        await asyncio.wait_for(interruption.cancels(playing), limit_s)
    except asyncio.TimeoutError:
        report.missed("in_time", too_slow(limit_s, report.unfinished))
    except asyncio.CancelledError:
        report.missed("in_time", "the demo was stopped by a signal")


def too_slow(limit_s: float, unfinished: Sequence[str]) -> str:
    """What to make of a demo that reached its limit, and what to do."""
    going_on = ", ".join(unfinished) or "the start of the broker and of the Jupyter server"
    return (
        f"the machine was too slow: the limit of {say_duration(round(limit_s * 1000))} was reached. Still going on: "
        f"{going_on}. Play it again when the machine has less to do, or with more time: "
        f"gpubroker demo --limit {2 * limit_s:.0f}s"
    )


async def _play(place: DemoPlace, report: Report) -> None:
    report.say(WELCOME)
    places = Places.find(place.environment)
    server = JupyterServer(place)
    starting = asyncio.to_thread(ensure_broker, places, environ=place.environment)
    url, _ = await asyncio.gather(starting, server.start())
    async with AsyncBrokerClient(url) as broker:
        witness = Witness(broker, place.environment)
        try:
            await asyncio.gather(
                *(
                    _play_story(
                        Scene(story, place, server, witness),
                        steps,
                        report.begin(story.give_back, story.title),
                    )
                    for story, steps in PLAYS
                )
            )
        finally:
            await witness.close()


async def _play_story(scene: Scene, steps: Sequence[Act], chapter: Chapter) -> None:
    """Step after step; after one that did not happen the others of this story cannot."""
    failure = ""
    for step in steps:
        if failure:
            chapter.missed(step.__name__, f"not tried, since before it: {failure}")
            continue
        try:
            chapter.saw(step.__name__, await step(scene))
        except (Failed, BrokerDown, BrokerError, OSError) as error:
            failure = str(error) or type(error).__name__
            chapter.missed(step.__name__, failure)
        except asyncio.CancelledError:
            chapter.unfinished(step.__name__)
            for missed in steps[len(chapter.steps) :]:
                chapter.missed(missed.__name__, "the demo was stopped before it")
            chapter.close()
            raise
    chapter.close()
    await scene.close()
