"""What clients send. Each body has its bounds next to it; ids of new things are chosen by the client (32 hex digits)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Id = Annotated[
    str, Meta(pattern="^[0-9a-f]{32}$", description="random 128 bit, chosen by the client")
]
Name = Annotated[str, Meta(max_length=1024)]
QueueName = Annotated[str, Meta(max_length=64, pattern="^[A-Za-z0-9_-]+$")]
DURATION_MS_MAX = 366 * 24 * 3_600_000
DurationMs = Annotated[int, Meta(ge=0, le=DURATION_MS_MAX)]
SpanMs = Annotated[int, Meta(ge=1_000, le=DURATION_MS_MAX)]
Code = Annotated[str, Meta(max_length=64, pattern="^[a-z0-9_]+$")]
Kind = Literal["empty", "parked", "checkpointed", "restarted"]


class StopBody(Struct, frozen=True):
    """POST /v1/broker:stop. Refused while anything is held, waited for or queued, but with `force`.

    With `unless_attended` also while a session lives or somebody waits for news of anything but the broker itself.
    """

    force: bool
    unless_attended: bool = False


class ModeBody(Struct, frozen=True):
    """PUT /v1/admin/mode: for a GPU, for a group of people, or for all. Without a mode, what is named has none of its own."""

    mode: Literal["observe", "advise", "enforce"] | None = None
    gpu: Name | None = None
    group: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


Why = Annotated[str, Meta(min_length=1, max_length=300)]


class GpuBody(Struct, frozen=True):
    """POST /v1/admin/gpus:disable (and :enable). `gpu` is its UUID."""

    gpu: Name
    why: Why = "no reason given"


class SlotBody(Struct, frozen=True):
    """POST /v1/admin/slots:clear: the admin vouches that nobody is on the slot."""

    slot: Name
    why: Why


class RevokeBody(Struct, frozen=True):
    """POST /v1/admin/leases/{id}:revoke. The holder reads `why`."""

    why: Why
    notice_ms: DurationMs = 300_000


class ReasonBody(Struct, frozen=True):
    code: Code
    values: dict[str, str | int | bool | None] = {}


class SpecBody(Struct, frozen=True):
    """See `core.model.SlotSpec`. A slice is asked for by profile (`1g.18gb`) or by least memory."""

    count: Annotated[int, Meta(ge=1, le=1024)] = 1
    model: Annotated[str, Meta(max_length=64)] | None = None
    memory_mib_min: Annotated[int, Meta(ge=1, le=16_777_216)] | None = None
    profile: Annotated[str, Meta(max_length=32)] | None = None


class SessionBody(Struct, frozen=True):
    """PUT /v1/sessions/{id}: by the Jupyter server for its kernel, or by the process itself."""

    kind: Literal["kernel", "command", "runner"]
    name: Name
    pid: Annotated[int, Meta(ge=1)]
    kernel_id: Annotated[str, Meta(max_length=128)] | None = None
    server_id: Annotated[str, Meta(max_length=64)] | None = None
    predecessor: Id | None = None
    headless: bool = False


class Report(Struct, frozen=True):
    session_id: Id
    activity: Literal["unknown", "idle", "running", "input", "debugger"]
    front_ends: Annotated[int, Meta(ge=0, le=100_000)] = 0


class ReportsBody(Struct, frozen=True):
    """POST /v1/sessions:report: the heartbeat of all sessions of one Jupyter server."""

    server_id: Annotated[str, Meta(max_length=64)]
    sessions: Annotated[tuple[Report, ...], Meta(max_length=10_000)]


class OfferBody(Struct, frozen=True):
    """POST /v1/sessions/{id}:offer: which give-backs would work now, and why the others would not."""

    kinds: tuple[Kind, ...] = ()
    refusals: dict[Kind, ReasonBody] = {}
    by_server: bool = False


class RequestBody(Struct, frozen=True):
    """PUT /v1/requests/{id}. `wait_ms` None waits for ever, 0 asks for now or never."""

    session_id: Id
    spec: SpecBody = SpecBody()
    queue: QueueName = "interactive"
    wait_ms: DurationMs | None = None
    duration_ms: SpanMs | None = None
    preemptible: bool = False


class KeepBody(Struct, frozen=True):
    keep_ms: SpanMs | None = None


class ReleaseBody(Struct, frozen=True):
    """POST /v1/leases/{id}:release (and :park). `done` says the holder already gave the device back by `kind`."""

    kind: Kind | None = None
    done: bool = False
    residue_mib: Annotated[int, Meta(ge=0)] = 0


class UnparkBody(Struct, frozen=True):
    request_id: Id
    wait_ms: DurationMs | None = None


class NoticeShownBody(Struct, frozen=True):
    number: int


class AnswerBody(Struct, frozen=True):
    """POST /v1/leases/{id}:answer: order `number` was carried out, or could not be."""

    number: int
    ok: bool
    residue_mib: Annotated[int, Meta(ge=0)] = 0
    reason: ReasonBody | None = None


class JobBody(Struct, frozen=True):
    """PUT /v1/jobs/{id}. The command line stays in the owner's spool under the same id."""

    session_id: Id
    name: Annotated[str, Meta(max_length=256)]
    spec: SpecBody = SpecBody()
    queue: QueueName = "batch"
    time_limit_ms: SpanMs | None = None
    preemptible: bool = False


class JobStartedBody(Struct, frozen=True):
    attempt: Annotated[int, Meta(ge=1)]
    pid: Annotated[int, Meta(ge=1)]


class JobEndedBody(Struct, frozen=True):
    attempt: Annotated[int, Meta(ge=1)]
    exit_status: int | None
