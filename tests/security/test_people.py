"""Several people and one broker of the machine: nobody sees or touches what is another's (I18), and few administer."""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest

from tests.support.people import (
    ADA,
    ADMIN,
    BOB,
    NOT_SEVERAL,
    ROOT,
    Machine,
    machine_broker,
    start,
)

pytestmark = pytest.mark.skipif(NOT_SEVERAL is not None, reason=str(NOT_SEVERAL))

ME = """
import json, os
from jupyter_gpubroker.client import BrokerClient, routes
import msgspec
with BrokerClient(os.environ["GPUBROKER_URL"]) as broker:
    print(json.dumps(msgspec.to_builtins([broker.call(routes.ME), broker.call(routes.HEALTH)])))
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with machine_broker() as running:
        yield running


@pytest.mark.parametrize("who", [ADA, BOB, ADMIN, ROOT], ids=lambda who: who.name)
def test_the_kernel_says_who_calls_and_only_the_group_administers(machine, who) -> None:
    me, health = machine.acts(who, ME)
    assert me == {"owner": who.name, "uid": who.uid, "admin": who is ADMIN}
    assert (health["scope"], health["mode"]) == ("machine", "observe")


def test_the_socket_is_open_to_all_and_everything_else_closed(machine) -> None:
    modes = {
        name: stat.S_IMODE((machine.root / name).stat().st_mode)
        for name in ("run/broker.sock", "run/broker.lock", "state/broker.db", "state/broker.log")
    }
    assert modes.pop("run/broker.sock") == 0o666
    assert set(modes.values()) == {0o600}


def test_a_person_may_not_put_another_socket_there(machine) -> None:
    code = "import os, json; print(json.dumps(os.access(os.path.dirname(os.environ['GPUBROKER_URL'][7:]), os.W_OK)))"
    assert machine.acts(ADA, code) is False


def test_the_broker_of_a_machine_refuses_to_be_root(machine) -> None:
    child = start(ROOT, ["-m", "jupyter_gpubroker.broker", "--scope=machine"], {}, stderr=-1)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 2
    assert b"system user" in said
