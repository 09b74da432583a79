"""What the broker answers. Every state comes with its sentence in English (`sentence`) and Spanish (`sentence_es`)."""

from __future__ import annotations

from msgspec import Struct

Values = dict[str, str | int | bool | None]


class ReasonView(Struct, frozen=True):
    code: str
    values: Values
    sentence: str
    sentence_es: str


class Problem(Struct, frozen=True):
    """RFC 9457 problem details (application/problem+json). `detail` says what happened, why and what to do."""

    status: int
    code: str
    title: str
    detail: str
    detail_es: str
    values: Values
    type: str = "about:blank"


class HealthView(Struct, frozen=True):
    """`pid` and `incarnation` tell brokers apart; `ready` once the devices were looked at (or cannot be: `problem`).

    `mode` is what holds for the caller, apart from single GPUs; `mode_sentence` says what it means.
    `simulates` are the GPUs that this broker simulates, such as `2xH200`, however they fare; empty where it simulates none.
    `isolation` is what keeps programs off GPUs that were not lent to them: `none`, `advisory` or `fenced`.
    """

    status: str
    version: str
    api: int
    scope: str
    mode: str
    incarnation: str
    pid: int
    ready: bool
    simulated: bool
    uptime_ms: int
    problem: ReasonView | None = None
    simulates: str = ""
    isolation: str = "none"
    mode_sentence: str = ""
    mode_sentence_es: str = ""


class ModesView(Struct, frozen=True):
    """How far the broker goes for all, and where that differs; the mildest that applies counts."""

    mode: str
    gpus: dict[str, str]
    groups: dict[str, str]
    sentence: str
    sentence_es: str


class StoppedView(Struct, frozen=True):
    """The broker ends now; what depended on it goes on, and a broker that is started again finds it."""

    pid: int
    sentence: str
    sentence_es: str


class MeView(Struct, frozen=True):
    owner: str
    uid: int
    admin: bool


class SlotView(Struct, frozen=True):
    """`lease_id` only for one's own; `taken` says that somebody holds it. Unknown numbers are null, never 0."""

    id: str
    kind: str
    profile: str | None
    memory_mib: int
    state: str
    epoch: int
    taken: bool
    lease_id: str | None
    memory_used_mib: int | None
    utilisation_percent: int | None
    reason: ReasonView | None


class GpuView(Struct, frozen=True):
    uuid: str
    index: int
    node: str
    model: str
    memory_mib: int
    mig_enabled: bool
    simulated: bool
    state: str
    slots: tuple[SlotView, ...]


class GpusView(Struct, frozen=True):
    gpus: tuple[GpuView, ...]
    problem: ReasonView | None = None


class NoticeView(Struct, frozen=True):
    number: int
    due_in_ms: int
    reason: ReasonView
    shown: bool


class OrderView(Struct, frozen=True):
    """What the holder's side must do now; answer with POST :answer. `resume` is the way back (unpark)."""

    number: int
    kind: str
    resume: bool
    due_in_ms: int


class LeaseView(Struct, frozen=True):
    """`visible_devices` is the value for CUDA_VISIBLE_DEVICES. `give_backs` would work now, mildest first.

    `ended_ago_ms` is null until the slots were seen clear.
    """

    id: str
    state: str
    session_id: str
    job_id: str | None
    queue: str
    slots: tuple[str, ...]
    epochs: tuple[int, ...]
    models: tuple[str, ...]
    profiles: tuple[str | None, ...]
    memory_mib: int
    simulated: bool
    visible_devices: str
    home: tuple[str, ...]
    verdict: str
    verdict_for_ms: int
    held_for_ms: int
    ends_in_ms: int | None
    kept_for_ms: int | None
    keeps_left: int | None
    context_seen: bool
    memory_used_mib: int | None
    utilisation_percent: int | None
    give_back: str
    give_backs: tuple[str, ...]
    refusals: dict[str, ReasonView]
    gave_back: str | None
    notice: NoticeView | None
    order: OrderView | None
    reason: ReasonView | None
    sentence: str
    sentence_es: str
    ended_ago_ms: int | None = None


class LeasesView(Struct, frozen=True):
    leases: tuple[LeaseView, ...]


class RequestView(Struct, frozen=True):
    """`place` counts from 1 in the line this request stands in; `expected_in_ms` null when nobody can say."""

    id: str
    state: str
    session_id: str
    job_id: str | None
    queue: str
    place: int | None
    waiting: int
    waited_ms: int
    expected_in_ms: int | None
    lease: LeaseView | None
    reason: ReasonView | None
    sentence: str
    sentence_es: str


class RequestsView(Struct, frozen=True):
    requests: tuple[RequestView, ...]


class SessionView(Struct, frozen=True):
    """A session with everything it must act on: its leases (with orders and notices) and waiting requests.

    `last_lease` is what it, or the process it took the place of, held last: there while it holds nothing. `warnings` are about
    what its processes do that they may not, as long as they do.
    """

    id: str
    kind: str
    name: str
    kernel_id: str | None
    server_id: str | None
    state: str
    activity: str
    mode: str
    policy: str | None
    leases: tuple[LeaseView, ...]
    requests: tuple[RequestView, ...]
    last_lease: LeaseView | None = None
    warnings: tuple[ReasonView, ...] = ()


class SessionsView(Struct, frozen=True):
    sessions: tuple[SessionView, ...]


class ReportedView(Struct, frozen=True):
    """`unknown` are the ids the broker does not know as live: PUT them again."""

    unknown: tuple[str, ...]


class QueueEntry(Struct, frozen=True):
    """One in line. Others' entries carry no names and no ids."""

    place: int
    queue: str
    tier: str
    mine: bool
    id: str | None
    name: str | None
    count: int
    what: str
    waited_ms: int
    expected_in_ms: int | None
    reason: ReasonView | None


class QueueView(Struct, frozen=True):
    waiting: tuple[QueueEntry, ...]
    free_slots: int
    slots: int


class JobView(Struct, frozen=True):
    """`lease` has the devices once granted. While `stopping`, KILL is due in `kill_in_ms`."""

    id: str
    number: int
    name: str
    session_id: str
    queue: str
    state: str
    attempt: int
    submitted_at: str
    waited_ms: int
    ran_for_ms: int | None
    pid: int | None
    exit_status: int | None
    outcome: str | None
    kill_in_ms: int | None
    place: int | None
    expected_in_ms: int | None
    lease: LeaseView | None
    reason: ReasonView | None
    sentence: str
    sentence_es: str


class JobsView(Struct, frozen=True):
    jobs: tuple[JobView, ...]


class Step(Struct, frozen=True):
    """One line of a story: when (RFC 3339), what, and the numbers behind it."""

    at: str
    event: str
    reason: ReasonView


class RulingView(Struct, frozen=True):
    """A verdict, the rule that gave it, how long it had lasted then, and all numbers that it rests on."""

    verdict: str
    rule: str
    for_ms: int
    evidence: Values
    sentence: str
    sentence_es: str


class WhyView(Struct, frozen=True):
    """`kept` is the ruling that a lease's verdict, or the last step towards taking it, rests on; `now` is this moment's."""

    id: str
    sentence: str
    sentence_es: str
    numbers: Values
    story: tuple[Step, ...]
    kept: RulingView | None = None
    now: RulingView | None = None


class PolicyView(Struct, frozen=True):
    """The rules of one policy, as numbers and as a sentence."""

    name: str
    idle_ms: int
    notice_ms: int
    never_used_ms: int
    host_busy_ms: int
    keep_ms: int
    keeps_max: int
    sentence: str
    sentence_es: str
    grace_ms: int = 0
    serving_ms: int = 0
    host_decides: bool = False


class QueueRuleView(Struct, frozen=True):
    """`policy` null: idleness is never a reason to take a lease of this queue."""

    name: str
    tier: str
    policy: str | None
    preemptible: bool


class RulesView(Struct, frozen=True):
    policies: tuple[PolicyView, ...]
    queues: tuple[QueueRuleView, ...]


class FollowView(Struct, frozen=True):
    """What follows at once from new rules, and how often."""

    times: int
    reason: ReasonView


class PoliciesView(Struct, frozen=True):
    """What a policy file changed (or would change): the new rows, one sentence each, and what follows as things are."""

    applied: bool
    changes: tuple[str, ...]
    follows: tuple[FollowView, ...] = ()


class HeldView(Struct, frozen=True):
    """A lease of anybody, for admins. `name` is that of the notebook, command or job."""

    owner: str
    name: str
    lease: LeaseView


class AllLeasesView(Struct, frozen=True):
    leases: tuple[HeldView, ...]


class AuditEntry(Struct, frozen=True):
    """One change of one thing. `before` and `after` are its states, null where it was not there (any more)."""

    sequence: int
    at: str
    event: str
    table: str
    id: str
    before: str | None
    after: str | None
    reason: ReasonView


class AuditView(Struct, frozen=True):
    """Oldest first. Ask on with `after` = `looked_to`."""

    entries: tuple[AuditEntry, ...]
    looked_to: int


class UseView(Struct, frozen=True):
    """What one person had within the time: GPU time in ms, a slice by its share of the GPU.

    `wanted_ms` is the part of `idle_ms` while somebody waited for it, `outside_ms` that of `held_ms` without a lease, and
    `spared_ms` what the rules would have freed had they been enforced. `taken` and `spared` count leases.
    """

    owner: str
    held_ms: int
    productive_ms: int
    idle_ms: int
    wanted_ms: int
    outside_ms: int
    spared_ms: int
    taken: int
    spared: int


class UsageView(Struct, frozen=True):
    """Admins see everybody, others themselves; the sentence is about those."""

    hours: int
    since: str
    people: tuple[UseView, ...]
    sentence: str
    sentence_es: str
