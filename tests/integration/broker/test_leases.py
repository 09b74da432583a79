"""A real broker on simulated GPUs: who asks gets, who is gone gives back, who waits is served next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_gpubroker.client import BrokerError, routes
from jupyter_gpubroker.wire.bodies import ReleaseBody, RequestBody, SessionBody, SpecBody
from jupyter_gpubroker.wire.views import RequestView
from tests.conftest import Folders
from tests.support.broker import Holder, RunningBroker, new_id, running_broker

DONE = ReleaseBody(kind="empty", done=True)


@pytest.fixture(scope="module")
def shared_broker(module_folders: Folders) -> Iterator[RunningBroker]:
    with running_broker("2xH200") as running:
        yield running


@pytest.fixture
def broker(shared_broker: RunningBroker) -> RunningBroker:
    """The one broker, with both slots free and nobody in line."""
    shared_broker.until_free(2)
    return shared_broker


def until(broker: RunningBroker, request_id: str, state: str) -> RequestView:
    for view in broker.client.watch(routes.REQUEST, request_id):
        if view.state == state:
            return view
    raise AssertionError("a watch never ends")


def test_a_request_becomes_a_lease_and_a_release_serves_who_waits(broker: RunningBroker) -> None:
    with Holder(broker) as first, Holder(broker) as second:
        lease = first.acquire(count=2)
        assert (lease.state, len(lease.slots), lease.simulated) == ("active", 2, True)
        assert lease.visible_devices == ",".join(lease.slots)
        waiting = second.ask()
        assert (waiting.state, waiting.place, waiting.waiting) == ("waiting", 1, 1)
        queue = broker.client.call(routes.QUEUE)
        assert [(entry.place, entry.mine, entry.id) for entry in queue.waiting] == [
            (1, True, waiting.id)
        ]
        broker.client.call(routes.RELEASE, lease.id, DONE)
        granted = until(broker, waiting.id, "granted")
        assert granted.lease is not None
        assert granted.lease.slots[0] in lease.slots
        assert broker.client.call(routes.LEASE, lease.id).state == "cleared"
        acknowledged = broker.client.call(routes.ACKNOWLEDGE, granted.lease.id)
        assert acknowledged.state == "active"


def test_the_slot_of_a_killed_holder_is_free_within_two_seconds(broker: RunningBroker) -> None:
    with Holder(broker) as first, Holder(broker) as second:
        first.acquire(count=2)
        waiting = second.ask(count=2)
        killed_s = time.monotonic()
        first.kill()
        until(broker, waiting.id, "granted")
        assert time.monotonic() - killed_s <= 2.0


def test_a_restarted_broker_adopts_the_living_and_ends_the_dead(broker: RunningBroker) -> None:
    with Holder(broker) as alive, Holder(broker) as dead:
        kept, lost = alive.acquire(), dead.acquire()
        before = broker.client.call(routes.HEALTH).incarnation
        broker.kill()
        dead.kill()
        broker.start()
        assert broker.client.call(routes.HEALTH).incarnation != before
        assert broker.client.call(routes.LEASE, kept.id).state == "active"
        for lease in broker.client.watch(routes.LEASE, lost.id):
            if lease.state == "cleared":
                break
        again = broker.client.call(routes.SESSION, alive.id)
        assert [lease.id for lease in again.leases] == [kept.id]


def test_who_leaves_the_line_is_not_served(broker: RunningBroker) -> None:
    with Holder(broker) as first, Holder(broker) as second:
        first.acquire(count=2)
        waiting = second.ask()
        assert broker.client.call(routes.CANCEL_REQUEST, waiting.id).state == "cancelled"
        assert broker.client.call(routes.CANCEL_REQUEST, waiting.id).state == "cancelled"
        assert broker.client.call(routes.QUEUE).waiting == ()


def test_a_request_nobody_waits_for_leaves_the_line(folders) -> None:
    arguments = ("--observe-every-s=0.1", "--attend-grace-s=0.3")
    with (
        running_broker("1xH200", arguments=arguments) as broker,
        Holder(broker) as first,
        Holder(broker) as second,
    ):
        lease = first.acquire()
        waiting = second.ask()
        for queue in broker.client.watch(routes.QUEUE):
            if not queue.waiting:
                break
        assert broker.client.call(routes.REQUEST, waiting.id).state == "cancelled"
        assert broker.client.call(routes.LEASE, lease.id).state == "active"


def test_the_same_change_again_has_the_same_answer(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        body = SessionBody(kind="kernel", name="test.ipynb", pid=holder.process.pid)
        assert broker.client.call(routes.PUT_SESSION, holder.id, body).id == holder.id
        request_id = new_id()
        first = broker.client.call(routes.PUT_REQUEST, request_id, RequestBody(holder.id))
        again = broker.client.call(routes.PUT_REQUEST, request_id, RequestBody(holder.id))
        assert first.lease is not None
        assert again.lease is not None
        assert again.lease.id == first.lease.id
        for _ in range(2):
            broker.client.call(routes.ACKNOWLEDGE, first.lease.id)
        with pytest.raises(BrokerError) as refused:
            broker.client.call(routes.PUT_REQUEST, request_id, RequestBody(holder.id, SpecBody(2)))
        assert refused.value.status == 409
        for _ in range(2):
            broker.client.call(routes.RELEASE, first.lease.id, DONE)
        for _ in range(2):
            broker.client.call(routes.END_SESSION, holder.id)


def test_what_there_is_not_is_refused_with_what_there_is(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        for spec in (SpecBody(3), SpecBody(profile="9g.99gb"), SpecBody(model="A100")):
            with pytest.raises(BrokerError) as refused:
                broker.client.call(routes.PUT_REQUEST, new_id(), RequestBody(holder.id, spec))
            assert refused.value.status == 422
            assert "H200" in refused.value.problem.detail
            assert refused.value.problem.detail_es


def test_two_waiting_requests_know_their_places(broker: RunningBroker) -> None:
    with Holder(broker) as first, Holder(broker) as second, Holder(broker) as third:
        first.acquire(count=2)
        places = [holder.ask(count=2).place for holder in (second, third)]
        assert places == [1, 2]


def test_the_numbers_of_a_lease_are_the_devices(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        lease = holder.acquire()
        gpus = broker.client.call(routes.GPUS)
        (slot,) = [slot for gpu in gpus.gpus for slot in gpu.slots if slot.taken]
        assert slot.lease_id == lease.id
        assert slot.state == "leased"
        assert slot.memory_used_mib is not None
        why = broker.client.call(routes.WHY_LEASE, lease.id)
        assert why.sentence
        assert [step.event for step in why.story][:1] == ["RequestMade"]
        assert why.numbers["verdict"] == broker.client.call(routes.LEASE, lease.id).verdict


def test_a_session_of_a_process_that_is_not_there_is_refused(broker: RunningBroker) -> None:
    body = SessionBody(kind="kernel", name="x", pid=2**22 - 1)
    with pytest.raises(BrokerError) as refused:
        broker.client.call(routes.PUT_SESSION, new_id(), body)
    assert refused.value.code == "no_such_process"


def test_after_a_death_the_next_incarnation_is_told_what_became_of_the_gpu(folders) -> None:
    with running_broker("1xH200") as broker, Holder(broker) as first:
        lease = first.acquire()
        first.kill()
        with Holder(broker, predecessor=first.id) as second:
            for view in broker.client.watch(routes.SESSION, second.id, wait_s=5):
                assert view.last_lease is not None
                assert view.last_lease.id == lease.id
                if view.last_lease.state == "cleared":
                    break
            assert view.last_lease is not None
            assert view.last_lease.reason is not None
            assert view.last_lease.reason.code == "process_gone"
            assert view.last_lease.ended_ago_ms is not None
            second.acquire()
            assert broker.client.call(routes.SESSION, second.id).last_lease is None


def test_whatever_is_over_or_was_refused_says_why(folders) -> None:
    with running_broker("1xH200") as broker, Holder(broker) as holder:
        client = broker.client
        refused_id = new_id()
        body = RequestBody(holder.id, SpecBody(count=2))
        with pytest.raises(BrokerError) as refused:
            client.call(routes.PUT_REQUEST, refused_id, body)
        for view in (
            client.call(routes.WHY_REQUEST, refused_id),
            client.call(routes.WHY, query={"of": refused_id[:10]}),
        ):
            assert view.sentence == str(refused.value)
            assert view.story[-1].event == "Refused"
        lease = holder.acquire()
        with Holder(broker) as other:
            waiting = other.ask()
            client.call(routes.CANCEL_REQUEST, waiting.id)
            cancelled = client.call(routes.WHY, query={"of": waiting.id[:12]})
            assert cancelled.sentence == "The request was cancelled."
        assert client.call(routes.WHY, query={"of": lease.id}).numbers["keeps_left"] == 3
        with pytest.raises(BrokerError, match="begins with 'ffff'") as unknown:
            client.call(routes.WHY, query={"of": "ffff"})
        assert unknown.value.status == 404


def test_the_rules_are_told_as_numbers_and_words(folders) -> None:
    with running_broker("1xH200") as broker:
        rules = broker.client.call(routes.POLICIES)
        gentle = next(policy for policy in rules.policies if policy.name == "gentle")
        assert gentle.idle_ms == 1_800_000
        assert "after 30 min idle" in gentle.sentence
        assert {queue.name for queue in rules.queues} >= {"interactive", "batch", "scavenger"}


def test_one_learns_what_would_become_of_a_request_without_asking(broker: RunningBroker) -> None:
    with Holder(broker) as first, Holder(broker) as second:

        def outlook(**spec: Any) -> RequestView:
            body = RequestBody(second.id, spec=SpecBody(**spec))
            return broker.client.call(routes.OUTLOOK, None, body)

        broker.client.call(routes.RELEASE, first.acquire(count=2).id, DONE)
        for view in broker.client.watch(routes.QUEUE):
            if view.free_slots == 2:
                break  # both were seen clear
        assert outlook(count=2).state == "granted"
        first.acquire(count=2)
        would = outlook()
        assert (would.state, would.place, would.waiting) == ("waiting", 1, 1)
        with pytest.raises(BrokerError, match="No single GPU here has"):
            outlook(memory_mib_min=9_000_000)
        assert broker.client.call(routes.REQUESTS).requests == ()
        assert broker.client.call(routes.QUEUE).waiting == ()
