"""Sets the stage, plays the stories one after the other, and clears the stage on every path."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

from ...client import AsyncBrokerClient, BrokerDown, BrokerError, PlaceRefused, Places
from ...client.start import ensure_broker
from .notebook import Failed, JupyterServer
from .place import DemoPlace
from .report import Report
from .scene import KEPT_STEPS, STEPS, Act, Scene
from .stories import CHECKPOINTED, EMPTY, KEPT, PARKED, Story
from .witness import Witness

IN_ALL_S = 85.0  # clearing the stage takes the rest of the 90
STEP_S = 30.0
PLAYS: tuple[tuple[Story, Sequence[Act]], ...] = (
    (EMPTY, STEPS),
    (PARKED, STEPS),
    (CHECKPOINTED, STEPS),
    (KEPT, KEPT_STEPS),
)


def play(as_json: bool) -> bool:
    """Play everything; whether every step happened."""
    report = Report(as_json)
    place = DemoPlace()
    try:
        asyncio.run(_play_or_stop(place, report))
    except (Failed, BrokerDown, PlaceRefused, OSError) as error:
        report.missed("stage_set", "", str(error))
    except (asyncio.CancelledError, KeyboardInterrupt):
        report.missed("in_time", "", "the demo was stopped by a signal")
    finally:
        place.end()
    report.finish()
    return report.ok


async def _play_or_stop(place: DemoPlace, report: Report) -> None:
    """A signal or the end of the time cancels the play; what has not happened by then has not happened."""
    playing = asyncio.ensure_future(_play(place, report))
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
    try:
        await asyncio.wait_for(playing, IN_ALL_S)
    except asyncio.TimeoutError:
        report.missed("in_time", "", f"the demo did not end within {IN_ALL_S:.0f} s")


async def _play(place: DemoPlace, report: Report) -> None:
    report.say(
        "gpubroker demo: simulated GPUs, real processes. Nothing of yours is touched.", bold=True
    )
    places = Places.find(place.environment)
    server = JupyterServer(place)
    starting = asyncio.to_thread(ensure_broker, places, environ=place.environment)
    url, _ = await asyncio.gather(starting, server.start())
    async with AsyncBrokerClient(url) as broker:
        witness = Witness(broker, place.environment)
        try:
            for story, steps in PLAYS:
                report.say(f"\n{story.give_back}: {story.title}", bold=True)
                await _play_story(Scene(story, place, server, witness), steps, report)
        finally:
            await witness.close()


async def _play_story(scene: Scene, steps: Sequence[Act], report: Report) -> None:
    """Step after step; after one that did not happen the others of this story cannot."""
    failure = ""
    for step in steps:
        name, give_back = step.__name__, scene.story.give_back
        if failure:
            report.missed(name, give_back, f"not tried, since before it: {failure}")
            continue
        try:
            report.saw(name, give_back, await asyncio.wait_for(step(scene), STEP_S))
        except (Failed, BrokerDown, BrokerError, OSError, asyncio.TimeoutError) as error:
            failure = str(error) or f"it was not seen within {STEP_S:.0f} s"
            report.missed(name, give_back, failure)
    await scene.close()
