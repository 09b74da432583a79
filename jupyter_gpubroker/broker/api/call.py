"""What an endpoint gets and gives.

A read is a plain function of the published state: it names what its answer depends on (`Answer.key`, without running
clocks) and makes the body only when asked. An action waits for something, mostly for its event to be committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import Struct

from ...core.events import Event, JobSubmitted, RequestMade
from ...core.model import RequestId, State
from ...errors import Conflict, Refused
from ...store import Archive
from ...wire.routes import Route
from ..attendance import Attendance
from ..housekeeping import Presence
from ..identity import Caller
from ..latest import Latest
from ..loop import Loop
from ..settings import Settings
from ..views import Views
from ..why import Refusal, Refusals

# A broker that has just started knows only the devices of the one before it.
FIRST_LOOK_S = 3.0

Body = TypeVar("Body", bound=Struct)


@dataclass(frozen=True, slots=True)
class Broker:
    """The parts of the broker that the API reaches."""

    loop: Loop
    latest: Latest
    attendance: Attendance
    presence: Presence
    settings: Settings
    refusals: Refusals
    stop: Callable[[], None]
    archive: Archive


@dataclass(frozen=True, slots=True)
class Call:
    """One call: who, about what, with which body. `thing_id` is empty where the path has none."""

    broker: Broker
    caller: Caller
    call_id: str
    thing_id: str
    body: Struct | bytes
    query: Mapping[str, str]

    @property
    def state(self) -> State:
        return self.broker.loop.state

    @property
    def views(self) -> Views:
        """Views of the state as it is now."""
        loop = self.broker.loop
        return Views(loop.state, self.broker.latest, loop.time.now(), self.caller)

    def body_as(self, kind: type[Body]) -> Body:
        assert isinstance(self.body, kind)  # decoded by its route
        return self.body

    async def ask(self, event: RequestMade | JobSubmitted) -> State:
        """As `send`, for what may be refused and asked about later: judged by the devices as this broker has seen them."""
        await self.first_look()
        try:
            return await self.send(event)
        except Refused as refused:
            if refused.status != Conflict.status:  # then it is there, and speaks for itself
                self._note_refusal(event, refused)
            raise

    async def first_look(self) -> None:
        """Return when the devices were looked at since the start, or that takes too long."""
        await self.broker.latest.first_look(FIRST_LOOK_S)

    def _note_refusal(self, event: RequestMade | JobSubmitted, refused: Refused) -> None:
        thing_id = event.request_id if isinstance(event, RequestMade) else event.job_id
        refusal = Refusal(self.caller.owner, thing_id, refused.reason, self.views.wall_now())
        self.broker.refusals.note(refusal)

    async def send(self, event: Event) -> State:
        """The state once the event is committed. Raises Refused."""
        return await self.broker.loop.submit(event, self.call_id)


@dataclass(frozen=True, slots=True)
class Answer:
    """`key` is equal as long as nothing worth telling changed. `attends` is the request that a long poll keeps in line."""

    key: object
    view: Callable[[], Struct | bytes]
    attends: RequestId | None = None

    @property
    def etag(self) -> str:
        return f'"{hashlib.blake2b(repr(self.key).encode(), digest_size=12).hexdigest()}"'


Read = Callable[[Call], Answer]
Action = Callable[[Call], Awaitable[Struct | None]]
Reads = Mapping[Route[Any], Read]
Actions = Mapping[Route[Any], Action]
