"""Every route of the API as data: what the broker serves, what clients call and what `openapi.json` describes.

A path names its ids as `{id}`; an action on one thing is `{id}:verb`. Adding a route here without serving it, or the
other way round, fails a test. Bodies are in `bodies`, answers in `views`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from . import bodies, views

API = "/v1"
BODY_BYTES_MAX = 64 * 1024
WAIT_S_MAX = 60

View = TypeVar("View", bound=Struct)
Method = Literal["GET", "PUT", "POST", "DELETE"]


class Nothing(Struct, frozen=True):
    """No body, or an empty answer (204)."""


@dataclass(frozen=True, slots=True)
class Route(Generic[View]):
    """`poll` says that the answer has an ETag and can be waited for; `queries` are the query arguments it knows."""

    method: Method
    path: str
    view: type[View]
    summary: str
    body: type[Struct] = Nothing
    poll: bool = False
    queries: tuple[str, ...] = ()
    media_type: str = "application/json"

    def url(self, thing_id: str | None = None) -> str:
        return API + (self.path if thing_id is None else self.path.replace("{id}", thing_id))


HEALTH = Route("GET", "/health", views.HealthView, "Is the broker there, and who is it", poll=True)
READY = Route(
    "GET", "/ready", views.HealthView, "The same, but 503 until the devices were looked at"
)
STOP = Route(
    "POST",
    "/broker:stop",
    views.StoppedView,
    "End the broker; who needs one starts it anew",
    bodies.StopBody,
)
ME = Route("GET", "/me", views.MeView, "Who the broker takes the caller for")
GPUS = Route("GET", "/gpus", views.GpusView, "All GPUs and their slots", poll=True)

PUT_SESSION = Route(
    "PUT",
    "/sessions/{id}",
    views.SessionView,
    "A process is there that may hold leases",
    bodies.SessionBody,
)
SESSION = Route(
    "GET", "/sessions/{id}", views.SessionView, "A session and what it must act on", poll=True
)
SESSIONS = Route(
    "GET",
    "/sessions",
    views.SessionsView,
    "The caller's live sessions",
    poll=True,
    queries=("server_id",),
)
REPORT_SESSIONS = Route(
    "POST",
    "/sessions:report",
    views.ReportedView,
    "What all kernels of a Jupyter server do",
    bodies.ReportsBody,
)
OFFER = Route(
    "POST",
    "/sessions/{id}:offer",
    views.SessionView,
    "Which give-backs would work now",
    bodies.OfferBody,
)
RESTART_SESSION = Route(
    "POST", "/sessions/{id}:restart", views.SessionView, "Its process will be replaced"
)
END_SESSION = Route("DELETE", "/sessions/{id}", Nothing, "It was shut down on purpose")

PUT_REQUEST = Route("PUT", "/requests/{id}", views.RequestView, "Ask for slots", bodies.RequestBody)
REQUEST = Route(
    "GET",
    "/requests/{id}",
    views.RequestView,
    "A request; who waits for it keeps its place",
    poll=True,
)
REQUESTS = Route("GET", "/requests", views.RequestsView, "The caller's waiting requests", poll=True)
OUTLOOK = Route(
    "POST",
    "/requests:outlook",
    views.RequestView,
    "What would become of a request; nothing is asked for",
    bodies.RequestBody,
)
CANCEL_REQUEST = Route("DELETE", "/requests/{id}", views.RequestView, "Leave the line")
WHY_REQUEST = Route("GET", "/requests/{id}/why", views.WhyView, "Why it waits or how it ended")

LEASES = Route(
    "GET", "/leases", views.LeasesView, "The caller's leases that are not over", poll=True
)
LEASE = Route("GET", "/leases/{id}", views.LeaseView, "A lease", poll=True)
ACKNOWLEDGE = Route("POST", "/leases/{id}:ack", views.LeaseView, "The process sees the devices now")
KEEP = Route(
    "POST", "/leases/{id}:keep", views.LeaseView, "Hold on although it is idle", bodies.KeepBody
)
RELEASE = Route(
    "POST", "/leases/{id}:release", views.LeaseView, "Give the slots back", bodies.ReleaseBody
)
PARK = Route(
    "POST",
    "/leases/{id}:park",
    views.LeaseView,
    "Give the slots back, to return",
    bodies.ReleaseBody,
)
UNPARK = Route(
    "POST", "/leases/{id}:unpark", views.RequestView, "Ask for the slots again", bodies.UnparkBody
)
NOTICE_SHOWN = Route(
    "POST",
    "/leases/{id}:shown",
    views.LeaseView,
    "The notice was put before a person",
    bodies.NoticeShownBody,
)
ANSWER = Route(
    "POST",
    "/leases/{id}:answer",
    views.LeaseView,
    "An order was carried out, or not",
    bodies.AnswerBody,
)
WHY_LEASE = Route("GET", "/leases/{id}/why", views.WhyView, "Why it is as it is")

QUEUE = Route("GET", "/queue", views.QueueView, "Everybody who waits, in order", poll=True)

PUT_JOB = Route("PUT", "/jobs/{id}", views.JobView, "Submit a batch job", bodies.JobBody)
JOB = Route("GET", "/jobs/{id}", views.JobView, "A job", poll=True)
JOBS = Route(
    "GET", "/jobs", views.JobsView, "The caller's jobs", poll=True, queries=("session_id",)
)
CANCEL_JOB = Route("DELETE", "/jobs/{id}", views.JobView, "Stop a job or take it out of the line")
JOB_STARTED = Route(
    "POST",
    "/jobs/{id}:started",
    views.JobView,
    "The runner started its process",
    bodies.JobStartedBody,
)
JOB_ENDED = Route(
    "POST", "/jobs/{id}:ended", views.JobView, "The process ended", bodies.JobEndedBody
)
WHY_JOB = Route("GET", "/jobs/{id}/why", views.WhyView, "Why it waits or how it ended")

WHY = Route(
    "GET",
    "/why",
    views.WhyView,
    "Why whatever has this id, or begins of it, is as it is; also what is over or was refused",
    queries=("of",),
)

POLICIES = Route("GET", "/policies", views.RulesView, "The rules: policies and queues")
APPLY_POLICIES = Route(
    "POST",
    "/admin/policies",
    views.PoliciesView,
    "Replace rows by those of a policy file (TOML)",
    queries=("dry_run",),
    media_type="text/plain",
)
OPENAPI = Route("GET", "/openapi.json", Nothing, "This description")

ROUTES: tuple[Route[Any], ...] = tuple(
    value for value in list(vars().values()) if isinstance(value, Route)
)
