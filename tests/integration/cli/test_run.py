"""`gpubroker run`: it waits, runs with the slots, gives them back; interrupted, it leaves the line at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.client.start import stop_broker
from tests.conftest import Folders
from tests.support.broker import Holder, RunningBroker, running_broker
from tests.support.command_line import argv, gpubroker, gpubroker_process

SHOWS = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.fixture(scope="module")
def shared_broker(module_folders: Folders) -> Iterator[RunningBroker]:
    with running_broker("2xH200") as running:
        yield running


@pytest.fixture
def broker(shared_broker: RunningBroker) -> RunningBroker:
    """The one broker, with both slots free and nobody in line."""
    shared_broker.until_free(2)
    return shared_broker


@contextmanager
def started(broker: RunningBroker, *arguments: str):
    """`gpubroker run` in the background; its standard error is told line by line."""
    with subprocess.Popen(
        argv("run", "--json", *arguments),
        env=dict(broker.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_command_sees_the_slots_and_they_are_given_back(broker: RunningBroker) -> None:
    result = gpubroker_process(broker, "run", "--gpus", "2", "--", sys.executable, "-c", SHOWS)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    gpus = broker.client.call(routes.GPUS).gpus
    assert set(seen["CUDA_VISIBLE_DEVICES"].split(",")) == {gpu.uuid for gpu in gpus}
    assert (seen["CUDA_DEVICE_ORDER"], seen["GPUBROKER_INHERITED"]) == ("PCI_BUS_ID", "1")
    assert seen["GPUBROKER_SIMULATED_STATE"] == str(broker.places.simulated)
    assert "GPUBROKER_JOB" not in seen
    broker.until_free(2)
    assert broker.client.call(routes.SESSIONS).sessions == ()


def test_what_the_command_does_on_the_slot_is_seen_as_its_own(broker: RunningBroker) -> None:
    work = "from gpubroker import simulated; simulated.burn(600, memory_mib=1000)"
    with started(broker, "--", sys.executable, "-c", work) as process:
        for view in broker.client.watch(routes.LEASES):
            if view.leases and view.leases[0].verdict == "active":
                assert view.leases[0].memory_used_mib == 1_400
                break
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    broker.until_free(2)


def test_it_ends_as_its_command_did(broker: RunningBroker) -> None:
    for code, status in (("exit 0", 0), ("exit 9", 9), ("kill -TERM $$", 143)):
        assert gpubroker(broker, "run", "--", "sh", "-c", code).returncode == status


def test_a_command_that_does_not_exist_leaves_nothing_held(broker: RunningBroker) -> None:
    result = gpubroker(broker, "run", "--", "no-such-command")
    assert result.returncode == 127
    assert "no command 'no-such-command'" in result.stderr
    broker.until_free(2)


def test_now_or_never_ends_with_its_own_code(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        holder.acquire(count=2)
        result = gpubroker(broker, "run", "--no-wait", "--", "true")
        assert result.returncode == 5
        result = gpubroker(broker, "run", "--wait", "200ms", "--", "true")
        assert result.returncode == 5
        assert broker.client.call(routes.QUEUE).waiting == ()


def test_what_can_never_be_had_is_refused_with_a_sentence(broker: RunningBroker) -> None:
    never = {
        "--gpus": "3",
        "--slice": "1g.18gb",
        "--memory": "500G",
        "--queue": "nowhere",
        "--model": "tpu",
    }
    for option, value in never.items():
        result = gpubroker(broker, "run", option, value, "--", "true")
        assert (result.returncode, len(result.stderr.splitlines())) == (3, 1), result.stderr
    assert broker.client.call(routes.QUEUE).waiting == ()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_waiting_it_leaves_the_line_at_once(
    broker: RunningBroker, number
) -> None:
    with Holder(broker) as holder:
        holder.acquire(count=2)
        with started(broker, "--", "true") as process:
            assert process.stderr is not None
            waiting = json.loads(process.stderr.readline())
            assert (waiting["event"], waiting["place"]) == ("waiting", 1)
            process.send_signal(number)
            assert process.wait(60) == 130
            assert broker.client.call(routes.QUEUE).waiting == ()


def test_when_its_turn_comes_it_runs(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        holder.acquire(count=2)
        with started(broker, "--", "echo", "my turn") as process:
            assert process.stderr is not None
            assert process.stdout is not None
            assert json.loads(process.stderr.readline())["event"] == "waiting"
            holder.kill()
            assert process.stdout.readline() == "my turn\n"
            assert process.wait(60) == 0


def test_a_broker_that_is_restarted_meanwhile_costs_it_nothing(broker: RunningBroker) -> None:
    with started(broker, "--", "sh", "-c", "echo begun; read line; exit 6") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        broker.kill()
        broker.start()
        (lease,) = broker.client.call(routes.LEASES).leases
        assert lease.state == "active"
        process.send_signal(signal.SIGUSR1)
        assert process.wait(60) == 128 + signal.SIGUSR1
    broker.until_free(2)


def test_its_time_limit_ends_the_command(broker: RunningBroker) -> None:
    result = gpubroker(broker, "run", "--for", "1s", "--", "sleep", "600")
    assert result.returncode == 128 + signal.SIGTERM
    broker.until_free(2)


def test_switched_off_the_command_runs_without_a_lease(broker: RunningBroker) -> None:
    result = gpubroker_process(
        broker, "run", "--", "sh", "-c", "echo [$GPUBROKER_INHERITED]; exit 4", GPUBROKER="off"
    )
    assert (result.returncode, result.stdout) == (4, "[]\n")
    assert "gpubroker is off" in result.stderr


def test_a_command_that_is_not_there_is_told_before_anybody_waits(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        holder.acquire(count=2)
        refused = gpubroker(broker, "run", "--", "no-such-command")
        assert refused.returncode == 127
        assert refused.stderr == (
            "gpubroker: there is no command 'no-such-command'. Check its name, or give its full path.\n"
        )


def test_it_waits_on_while_the_broker_is_away(folders: Folders) -> None:
    with running_broker("2xH200") as broker, Holder(broker) as holder:
        holder.acquire(count=2)
        with started(broker, "--", "echo", "my turn") as process:
            assert process.stderr is not None
            assert process.stdout is not None
            assert json.loads(process.stderr.readline())["event"] == "waiting"
            broker.kill()
            assert json.loads(process.stderr.readline())["event"] == "broker_down"
            holder.kill()
            assert process.stdout.readline() == "my turn\n", (
                "it started a broker, as every client may"
            )
            assert process.wait(60) == 0
        stop_broker(broker.url, force=True)
