"""Every route of the API as data: what the broker serves, what clients call and what `openapi.json` describes.

A path names its ids as `{id}`; an action on one thing is `{id}:verb`. Adding a route here without serving it, or the
other way round, fails a test. Bodies are in `bodies`, answers in `views`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from . import bodies, views

API = "/v1"
BODY_BYTES_MAX = 64 * 1024
WAIT_S_MAX = 60

View = TypeVar("View", bound=Struct)
Method = Literal["GET", "PUT", "POST", "DELETE"]
Right = Literal["anyone", "own", "admin"]


class Nothing(Struct, frozen=True):
    """No body, or an empty answer (204)."""


@dataclass(frozen=True, slots=True)
class Route(Generic[View]):
    """`poll` says that the answer has an ETag and can be waited for; `queries` are the query arguments it knows.

    `right` says who may: `anyone` whom the broker serves; only whose thing it is (`own`: others' are not there for him, and of
    lists he gets his part); only an `admin`.
    """

    method: Method
    path: str
    view: type[View]
    summary: str
    body: type[Struct] = Nothing
    poll: bool = False
    queries: tuple[str, ...] = ()
    media_type: str = "application/json"
    right: Right = field(kw_only=True)

    def url(self, thing_id: str | None = None) -> str:
        return API + (self.path if thing_id is None else self.path.replace("{id}", thing_id))


HEALTH = Route(
    "GET",
    "/health",
    views.HealthView,
    "Is the broker there, and who is it",
    poll=True,
    right="anyone",
)
READY = Route(
    "GET",
    "/ready",
    views.HealthView,
    "The same, but 503 until the devices were looked at",
    right="anyone",
)
STOP = Route(
    "POST",
    "/broker:stop",
    views.StoppedView,
    "End the broker; who needs one starts it anew",
    bodies.StopBody,
    right="admin",
)
ME = Route("GET", "/me", views.MeView, "Who the broker takes the caller for", right="anyone")
GPUS = Route("GET", "/gpus", views.GpusView, "All GPUs and their slots", poll=True, right="anyone")

PUT_SESSION = Route(
    "PUT",
    "/sessions/{id}",
    views.SessionView,
    "A process is there that may hold leases",
    bodies.SessionBody,
    right="own",
)
SESSION = Route(
    "GET",
    "/sessions/{id}",
    views.SessionView,
    "A session and what it must act on",
    poll=True,
    right="own",
)
SESSIONS = Route(
    "GET",
    "/sessions",
    views.SessionsView,
    "The caller's live sessions",
    poll=True,
    queries=("server_id",),
    right="own",
)
REPORT_SESSIONS = Route(
    "POST",
    "/sessions:report",
    views.ReportedView,
    "What all kernels of a Jupyter server do",
    bodies.ReportsBody,
    right="own",
)
OFFER = Route(
    "POST",
    "/sessions/{id}:offer",
    views.SessionView,
    "Which give-backs would work now",
    bodies.OfferBody,
    right="own",
)
RESTART_SESSION = Route(
    "POST", "/sessions/{id}:restart", views.SessionView, "Its process will be replaced", right="own"
)
END_SESSION = Route("DELETE", "/sessions/{id}", Nothing, "It was shut down on purpose", right="own")

PUT_REQUEST = Route(
    "PUT", "/requests/{id}", views.RequestView, "Ask for slots", bodies.RequestBody, right="own"
)
REQUEST = Route(
    "GET",
    "/requests/{id}",
    views.RequestView,
    "A request; who waits for it keeps its place",
    poll=True,
    right="own",
)
REQUESTS = Route(
    "GET", "/requests", views.RequestsView, "The caller's waiting requests", poll=True, right="own"
)
OUTLOOK = Route(
    "POST",
    "/requests:outlook",
    views.RequestView,
    "What would become of a request; nothing is asked for",
    bodies.RequestBody,
    right="own",
)
CANCEL_REQUEST = Route("DELETE", "/requests/{id}", views.RequestView, "Leave the line", right="own")
WHY_REQUEST = Route(
    "GET", "/requests/{id}/why", views.WhyView, "Why it waits or how it ended", right="own"
)

LEASES = Route(
    "GET",
    "/leases",
    views.LeasesView,
    "The caller's leases that are not over",
    poll=True,
    right="own",
)
LEASE = Route("GET", "/leases/{id}", views.LeaseView, "A lease", poll=True, right="own")
ACKNOWLEDGE = Route(
    "POST", "/leases/{id}:ack", views.LeaseView, "The process sees the devices now", right="own"
)
KEEP = Route(
    "POST",
    "/leases/{id}:keep",
    views.LeaseView,
    "Hold on although it is idle",
    bodies.KeepBody,
    right="own",
)
RELEASE = Route(
    "POST",
    "/leases/{id}:release",
    views.LeaseView,
    "Give the slots back",
    bodies.ReleaseBody,
    right="own",
)
PARK = Route(
    "POST",
    "/leases/{id}:park",
    views.LeaseView,
    "Give the slots back, to return",
    bodies.ReleaseBody,
    right="own",
)
UNPARK = Route(
    "POST",
    "/leases/{id}:unpark",
    views.RequestView,
    "Ask for the slots again",
    bodies.UnparkBody,
    right="own",
)
NOTICE_SHOWN = Route(
    "POST",
    "/leases/{id}:shown",
    views.LeaseView,
    "The notice was put before a person",
    bodies.NoticeShownBody,
    right="own",
)
ANSWER = Route(
    "POST",
    "/leases/{id}:answer",
    views.LeaseView,
    "An order was carried out, or not",
    bodies.AnswerBody,
    right="own",
)
WHY_LEASE = Route("GET", "/leases/{id}/why", views.WhyView, "Why it is as it is", right="own")

QUEUE = Route(
    "GET", "/queue", views.QueueView, "Everybody who waits, in order", poll=True, right="anyone"
)

PUT_JOB = Route(
    "PUT", "/jobs/{id}", views.JobView, "Submit a batch job", bodies.JobBody, right="own"
)
JOB = Route("GET", "/jobs/{id}", views.JobView, "A job", poll=True, right="own")
JOBS = Route(
    "GET",
    "/jobs",
    views.JobsView,
    "The caller's jobs",
    poll=True,
    queries=("session_id",),
    right="own",
)
CANCEL_JOB = Route(
    "DELETE", "/jobs/{id}", views.JobView, "Stop a job or take it out of the line", right="own"
)
JOB_STARTED = Route(
    "POST",
    "/jobs/{id}:started",
    views.JobView,
    "The runner started its process",
    bodies.JobStartedBody,
    right="own",
)
JOB_ENDED = Route(
    "POST", "/jobs/{id}:ended", views.JobView, "The process ended", bodies.JobEndedBody, right="own"
)
WHY_JOB = Route("GET", "/jobs/{id}/why", views.WhyView, "Why it waits or how it ended", right="own")

WHY = Route(
    "GET",
    "/why",
    views.WhyView,
    "Why whatever has this id, or begins of it, is as it is; also what is over or was refused",
    queries=("of",),
    right="own",
)

POLICIES = Route(
    "GET", "/policies", views.RulesView, "The rules: policies and queues", right="anyone"
)
USAGE = Route(
    "GET",
    "/usage",
    views.UsageView,
    "GPU time by person, and what the rules took or would have taken",
    queries=("hours",),
    right="own",
)

MODE = Route("GET", "/admin/mode", views.ModesView, "How far the broker goes", right="admin")
SET_MODE = Route(
    "PUT",
    "/admin/mode",
    views.ModesView,
    "Observe, advise or enforce: for all, a GPU or a group",
    bodies.ModeBody,
    right="admin",
)
DISABLE_GPU = Route(
    "POST",
    "/admin/gpus:disable",
    views.GpusView,
    "Lend nothing of a GPU any more; who is on it stays",
    bodies.GpuBody,
    right="admin",
)
ENABLE_GPU = Route(
    "POST",
    "/admin/gpus:enable",
    views.GpusView,
    "Lend a GPU again",
    bodies.GpuBody,
    right="admin",
)
CLEAR_SLOT = Route(
    "POST",
    "/admin/slots:clear",
    views.GpusView,
    "Vouch that nobody is on a slot that is held back",
    bodies.SlotBody,
    right="admin",
)
APPLY_POLICIES = Route(
    "POST",
    "/admin/policies",
    views.PoliciesView,
    "Replace rows by those of a policy file (TOML)",
    queries=("dry_run",),
    media_type="text/plain",
    right="admin",
)
ALL_LEASES = Route(
    "GET",
    "/admin/leases",
    views.AllLeasesView,
    "Everybody's leases that are not over",
    poll=True,
    right="admin",
)
REVOKE = Route(
    "POST",
    "/admin/leases/{id}:revoke",
    views.HeldView,
    "Have a lease given back, after a notice",
    bodies.RevokeBody,
    right="admin",
)
AUDIT = Route(
    "GET",
    "/admin/audit",
    views.AuditView,
    "What happened, and why",
    queries=("after", "limit", "table", "of", "event", "code"),
    right="admin",
)
OPENAPI = Route("GET", "/openapi.json", Nothing, "This description", right="anyone")

ROUTES: tuple[Route[Any], ...] = tuple(
    value for value in list(vars().values()) if isinstance(value, Route)
)
