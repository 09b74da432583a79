"""Several people and one broker of the machine: nobody sees or touches what is another's (I18), and few administer."""

from __future__ import annotations

import json
import stat
import subprocess
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


HOLD = """
import json, os, sys, uuid
from jupyter_gpubroker.client import BrokerClient, routes
from jupyter_gpubroker.wire.bodies import RequestBody, SessionBody
session, request = uuid.uuid4().hex, uuid.uuid4().hex
with BrokerClient(os.environ["GPUBROKER_URL"]) as broker:
    broker.call(routes.PUT_SESSION, session, SessionBody("kernel", "ada.ipynb", os.getpid()))
    lease = broker.call(routes.PUT_REQUEST, request, RequestBody(session)).lease
    broker.call(routes.ACKNOWLEDGE, lease.id)
    print(lease.id, flush=True)
    sys.stdin.read()
"""


def test_an_admin_switches_the_mode_and_others_are_told_who_may(machine) -> None:
    status, said = machine.says(ADA, "admin", "mode", "enforce")
    assert (status, f"group gid:{ADMIN.groups[0]}" in said) == (3, True)
    for mode in ("advise", "observe"):
        status, said = machine.says(ADMIN, "admin", "mode", mode)
        assert (status, said.startswith(f"mode {mode}: ")) == (0, True)
    _, said = machine.says(ADMIN, "admin", "audit", "--event", "ModeSet")
    assert f"The mode was set to advise by {ADMIN.name}." in said


def test_an_admin_sees_who_holds_what_and_takes_it_back_with_a_word(machine) -> None:
    holder = start(
        ADA, ["-c", HOLD], machine.environ(ADA), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    lease_id = holder.stdout.readline().decode().strip()
    try:
        _, listed = machine.says(ADMIN, "admin", "leases", "list")
        assert ADA.name in listed
        assert "ada.ipynb" in listed
        status, _ = machine.says(BOB, "admin", "leases", "revoke", lease_id, "--why", "mine")
        assert status == 3
        revoke = ("revoke", lease_id, "--why", "maintenance at noon", "--notice", "10m")
        _, said = machine.says(ADMIN, "admin", "leases", *revoke)
        assert "by an admin's word: maintenance at noon" in said
        _, said = machine.says(ADA, "status")
        assert "maintenance at noon" in said
    finally:
        holder.communicate()


def test_an_admin_takes_a_gpu_out_and_puts_it_back(machine) -> None:
    _, said = machine.says(ADMIN, "admin", "gpus", "disable", "1", "--why", "a fan is loud")
    assert f"taken out by {ADMIN.name}: a fan is loud" in said
    _, said = machine.says(ADMIN, "admin", "gpus", "enable", "1")
    assert "put back by" in said


def test_usage_names_nobody_but_oneself_to_who_is_no_admin(machine) -> None:
    for who in (BOB, ADMIN):
        status, said = machine.says(who, "usage", "--json")
        people = {one["owner"] for one in json.loads(said)["people"]}
        assert (status, people <= {who.name} or who is ADMIN) == (0, True)


def test_a_person_runs_a_batch_job_that_nobody_else_sees(machine) -> None:
    folder = machine.root / f"home-{ADA.uid}"
    status, said = machine.says(
        ADA, "submit", "--name", "j", "--", "sh", "-c", f"id -u > {folder}/ran"
    )
    assert status == 0, said
    job_id = said.splitlines()[0]
    status, output = machine.says(ADA, "logs", "-f", job_id)
    assert status == 0, output
    assert (folder / "ran").read_text().strip() == str(ADA.uid)
    assert (folder / "ran").stat().st_uid == ADA.uid
    status, said = machine.says(BOB, "logs", job_id)
    assert status != 0
    _, said = machine.says(BOB, "jobs", "--all")
    assert job_id[:8] not in said
