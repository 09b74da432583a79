"""The broker's process is killed with -9 at random moments while clients ask, get and give back over HTTP.

After each restart, before the clients go on: what they were told is still so. At no time do two of them hold one slot. In the
end the database is judged as after any other death. GPUBROKER_CRASH_SEED repeats the moments.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from jupyter_gpubroker.client import BrokerDown
from jupyter_gpubroker.core.check import violations
from jupyter_gpubroker.core.model import LeaseState, RequestState
from jupyter_gpubroker.store import Store
from jupyter_gpubroker.wire import routes
from jupyter_gpubroker.wire.bodies import ReleaseBody, RequestBody, SessionBody, SpecBody
from jupyter_gpubroker.wire.views import LeaseView, RequestView
from tests.crash.examination import epochs_given
from tests.support.broker import RunningBroker, new_id, running_broker
from tests.support.database import kept, retold

CYCLES = int(os.environ.get("GPUBROKER_BROKER_CRASH_CYCLES", "10"))
SEED = int(os.environ.get("GPUBROKER_CRASH_SEED", "20261130"))
CUSTOMERS = 4
PATIENCE_S = 30.0
DONE = ReleaseBody(kind="empty", done=True)


class Gate:
    """Lets calls to the broker through while open; closed, it waits for those under way to come back."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_open = True
        self._inside = 0

    @contextmanager
    def passed(self) -> Iterator[None]:
        with self._changed:
            assert self._changed.wait_for(lambda: self._is_open, PATIENCE_S)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_open = False

    def wait_until_empty(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._inside == 0, PATIENCE_S)

    def open(self) -> None:
        with self._changed:
            self._is_open = True
            self._changed.notify_all()


class Journal:
    """What customers were told. `holders` are the slots that somebody believes to hold right now."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries = 0
        self.granted: dict[str, LeaseView] = {}
        self.holders: dict[str, str] = {}
        self.active: set[str] = set()
        self.released: set[str] = set()

    def note_granted(self, lease: LeaseView) -> None:
        with self._changed:
            self.granted[lease.id] = lease
            self._count()

    def note_active(self, lease: LeaseView) -> None:
        with self._changed:
            for slot in lease.slots:
                other = self.holders.setdefault(slot, lease.id)
                assert other == lease.id, f"{slot} is held by {other} and by {lease.id}"
            self.active.add(lease.id)
            self._count()

    def note_leaving(self, lease: LeaseView) -> None:
        """Before the release is sent: from then on others may get the slots."""
        with self._changed:
            self.active.remove(lease.id)
            for slot in lease.slots:
                del self.holders[slot]

    def note_released(self, lease: LeaseView) -> None:
        with self._changed:
            self.released.add(lease.id)
            self._count()

    def wait_for_entries(self, count: int) -> None:
        with self._changed:
            until = self._entries + count
            assert self._changed.wait_for(lambda: self._entries >= until, PATIENCE_S)

    def _count(self) -> None:
        self._entries += 1
        self._changed.notify_all()


class Customer:
    """A kernel that asks, works for a moment and gives back, over and over; it repeats each call until it is answered."""

    def __init__(self, broker: RunningBroker, gate: Gate, journal: Journal, seed: int) -> None:
        self._client = broker.client
        self._gate = gate
        self._journal = journal
        self._dice = random.Random(seed)  # noqa: S311
        self._session_id = new_id()

    def live(self, over: threading.Event) -> None:
        process = subprocess.Popen(["sleep", "infinity"])
        try:
            body = SessionBody(kind="kernel", name="crash.ipynb", pid=process.pid)
            self._insist(routes.PUT_SESSION, self._session_id, body)
            while not over.is_set():
                self._one_lease()
        finally:
            process.kill()
            process.wait()

    def _one_lease(self) -> None:
        body = RequestBody(self._session_id, SpecBody(count=self._dice.choice((1, 1, 2))))
        request: RequestView = self._insist(routes.PUT_REQUEST, new_id(), body)
        while request.state == "waiting":
            request = self._next_news(request)
        assert request.lease is not None, request.sentence
        self._journal.note_granted(request.lease)
        lease: LeaseView = self._insist(routes.ACKNOWLEDGE, request.lease.id)
        self._journal.note_active(lease)
        time.sleep(self._dice.uniform(0, 0.02))
        self._journal.note_leaving(lease)
        self._insist(routes.RELEASE, lease.id, DONE)
        self._journal.note_released(lease)

    def _next_news(self, request: RequestView) -> RequestView:
        with self._gate.passed():
            try:
                for view in self._client.watch(routes.REQUEST, request.id):
                    if view.state != "waiting":
                        return view
            except BrokerDown:
                return request
        raise AssertionError("a watch never ends")

    def _insist(self, route: routes.Route[Any], thing_id: str, body: Any = None) -> Any:
        while True:
            with self._gate.passed():
                try:
                    return self._client.call(route, thing_id, body)
                except BrokerDown:
                    pass


def check_what_was_told(broker: RunningBroker, journal: Journal) -> None:
    """Before anybody goes on, so that nothing but the restart can have changed it."""
    for lease_id in journal.active:
        assert broker.client.call(routes.LEASE, lease_id).state == "active"
    for lease_id in journal.released:
        assert broker.client.call(routes.LEASE, lease_id).state in ("draining", "cleared")
    for lease_id in journal.granted:
        assert broker.client.call(routes.REQUEST, lease_id).state == "granted"


def check_what_is_left(broker: RunningBroker, journal: Journal) -> None:
    """Everything was served and given back, by the rules, and the audit log knows all of it."""
    store = Store.open(broker.places.database)
    state = store.load_state()
    assert violations(state) == []
    assert store.audit_broken_at() is None
    assert retold(broker.places.database) == kept(state)
    store.close()
    assert {lease.state for lease in state.leases.values()} == {LeaseState.CLEARED}
    assert {request.state for request in state.requests.values()} == {RequestState.GRANTED}
    assert set(state.leases) == journal.released
    given = epochs_given(broker.places.database)
    assert all(epochs == sorted(set(epochs)) for epochs in given.values())
    told: list[tuple[str, int]] = [
        (slot, epoch)
        for lease in journal.granted.values()
        for slot, epoch in zip(lease.slots, lease.epochs, strict=True)
    ]
    assert len(set(told)) == len(told), "an epoch was given twice"
    assert all(epoch in given[slot] for slot, epoch in told)


# httpcore leaves a socket to the garbage collector when nobody answers at its path.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket.socket.*family=1")
@pytest.mark.timeout(60 + 10 * CYCLES)
def test_a_broker_killed_at_random_moments_keeps_its_word_and_never_lends_a_slot_twice(folders):
    print(f"GPUBROKER_CRASH_SEED={SEED}")
    dice = random.Random(SEED)  # noqa: S311
    gate, journal, over = Gate(), Journal(), threading.Event()
    with running_broker("2xH200") as broker, ThreadPoolExecutor(CUSTOMERS) as threads:
        customers = [
            Customer(broker, gate, journal, dice.getrandbits(32)) for _ in range(CUSTOMERS)
        ]
        lives: list[Future[None]] = [threads.submit(one.live, over) for one in customers]
        try:
            for _ in range(CYCLES):
                journal.wait_for_entries(dice.randint(1, 12))
                time.sleep(dice.uniform(0, 0.03))
                gate.close()
                broker.kill()
                gate.wait_until_empty()
                broker.start()
                check_what_was_told(broker, journal)
                gate.open()
        finally:
            over.set()
            gate.open()
        for life in lives:
            life.result(PATIENCE_S)
        for held in broker.client.watch(routes.LEASES, wait_s=5):
            if not held.leases:  # what was given back last was seen clear
                break
        assert broker.stop() == 0
        check_what_is_left(broker, journal)
