"""Each command against a real broker: what it prints, what it changes, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from jupyter_gpubroker.client import routes
from tests.conftest import Folders
from tests.support.broker import Holder, RunningBroker, running_broker
from tests.support.command_line import (
    answer,
    argv,
    ended_runner,
    gpubroker,
    gpubroker_process,
    submit,
)


@contextmanager
def broker_and_runner() -> Iterator[RunningBroker]:
    # Requests of these tests are only looked at: they keep their place without anybody waiting for them.
    arguments = ("--observe-every-s=0.1", "--attend-grace-s=600")
    with running_broker("2xH200", arguments=arguments) as running, ended_runner(running):
        yield running


@pytest.fixture(scope="module")
def shared_broker(module_folders: Folders) -> Iterator[RunningBroker]:
    with broker_and_runner() as running:
        yield running


@pytest.fixture
def broker(shared_broker: RunningBroker) -> RunningBroker:
    """The one broker, with both slots free and nobody in line."""
    shared_broker.until_free(2)
    return shared_broker


@pytest.fixture
def own_broker(folders: Folders) -> Iterator[RunningBroker]:
    """For those who end it or change its rules."""
    with broker_and_runner() as running:
        yield running


def test_status_shows_what_is_there_and_what_one_holds(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        lease = holder.acquire()
        shown = answer(broker, "status", "--json")
        assert [held["id"] for held in shown["leases"]] == [lease.id]
        assert len(shown["gpus"]) == 2
        text = gpubroker(broker, "status").stdout
        assert f"yours ({lease.id[:8]})" in text
        assert "test.ipynb" in text
        assert text.count("(simulated)") >= 2


def test_gpus_are_listed_with_their_slices(folders) -> None:
    with running_broker("1xA100:3g.40gb+4g.40gb") as broker:
        shown = answer(broker, "gpus", "--json")
        assert {slot["profile"] for gpu in shown["gpus"] for slot in gpu["slots"]} == {
            "3g.40gb",
            "4g.40gb",
        }
        text = gpubroker(broker, "gpus").stdout
        assert "3g.40gb" in text
        assert "NVIDIA A100-SXM4-80GB (simulated)" in text


def test_the_queue_is_shown_in_order(broker: RunningBroker) -> None:
    assert "Nobody waits. Free: 2 of 2 GPUs or slices." in gpubroker(broker, "queue").stdout
    with Holder(broker) as first, Holder(broker) as second:
        first.acquire(count=2)
        waiting = second.ask()
        (entry,) = answer(broker, "queue", "--json")["waiting"]
        assert (entry["place"], entry["id"]) == (1, waiting.id)
        assert waiting.id[:8] in gpubroker(broker, "queue").stdout


def test_a_lease_is_kept_and_released(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        lease = holder.acquire()
        kept = answer(broker, "keep", "--json", "--for", "10m")
        assert kept["id"] == lease.id
        assert 0 < kept["kept_for_ms"] <= 600_000
        # A process that offers no way to give back keeps its slots, and the command says so.
        refused = gpubroker(broker, "release", lease.id[:6])
        assert refused.returncode == 3
        assert refused.stderr.startswith("gpubroker: ")


def test_a_lease_that_is_not_named_must_be_the_only_one(broker: RunningBroker) -> None:
    none = gpubroker(broker, "release")
    assert (none.returncode, none.stderr) == (3, "gpubroker: You hold no lease.\n")
    with Holder(broker) as first, Holder(broker) as second:
        leases = [first.acquire().id, second.acquire().id]
        several = gpubroker(broker, "keep", "--json")
        assert several.returncode == 3
        assert json.loads(several.stdout)["error"]["code"] == "which_lease"
        assert all(lease[:8] in several.stderr for lease in leases)


def test_why_tells_the_story_of_leases_requests_and_jobs(broker: RunningBroker) -> None:
    with Holder(broker) as first, Holder(broker) as second:
        lease = first.acquire(count=2)
        request = second.ask()
        job_id = submit(broker, "--", "true")
        for thing_id in (lease.id, request.id, job_id):
            told = answer(broker, "why", thing_id[:8], "--json")
            assert told["id"] == thing_id
            assert told["story"]
            text = gpubroker(broker, "why", thing_id).stdout
            assert told["sentence"] in text
            assert not any(name in text for name in told["numbers"] if "_" in name)


def test_a_verdict_can_be_decided_again_from_what_was_kept(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        lease = holder.acquire()
        holder.report("idle")
        while answer(broker, "why", lease.id, "--json")["kept"] is None:
            pass  # each look at the devices may bring the first verdict
        again = answer(broker, "why", lease.id, "--replay", "--json")
        assert again["same"] is True
        assert again["again"]["verdict"] == again["kept"]["verdict"]
        told = gpubroker(broker, "why", lease.id, "--replay")
        assert "Decided again" in told.stdout


def test_why_tells_times_by_the_clock_on_the_users_wall(broker: RunningBroker) -> None:
    with Holder(broker) as holder:
        lease = holder.acquire()
        told = answer(broker, "why", lease.id, "--json")
        at = datetime.fromisoformat(told["story"][0]["at"].replace("Z", "+00:00"))
        text = gpubroker_process(broker, "why", lease.id, TZ="Asia/Kathmandu").stdout
        assert at.astimezone(ZoneInfo("Asia/Kathmandu")).strftime("%Y-%m-%d %H:") in text


def test_why_knows_a_job_that_is_over(broker: RunningBroker) -> None:
    job_id = submit(broker, "--", "true")
    assert gpubroker(broker, "logs", "-f", job_id).returncode == 0
    assert answer(broker, "why", job_id, "--json")["numbers"]["exit_status"] == 0


def test_an_unknown_id_is_refused(broker: RunningBroker) -> None:
    for command in ("why", "cancel", "logs"):
        result = gpubroker(broker, command, "--json", "f" * 31)
        assert result.returncode == 3
        assert json.loads(result.stdout)["error"]["code"] == "unknown_id"


def test_a_part_of_an_id_that_several_gpus_share_is_refused(broker: RunningBroker) -> None:
    result = gpubroker(
        broker, "admin", "gpus", "disable", "GPU-", "--why", "a fan is loud", "--json"
    )
    assert result.returncode == 3
    assert json.loads(result.stdout)["error"]["code"] == "ambiguous_id"


def test_a_request_is_cancelled_by_a_part_of_its_id(broker: RunningBroker) -> None:
    with Holder(broker) as first, Holder(broker) as second:
        first.acquire(count=2)
        waiting = second.ask()
        assert answer(broker, "cancel", waiting.id[:10], "--json")["state"] == "cancelled"


def test_policies_are_applied_from_a_file_and_a_dry_run_changes_nothing(
    own_broker: RunningBroker, tmp_path
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[policies.gentle]\nidle = "7m"\n')
    change = "policies.gentle.idle: 30 min -> 7 min"
    apply = ("admin", "policies", "apply", str(file))
    assert change in gpubroker(own_broker, *apply, "--dry-run").stdout
    assert change in gpubroker(own_broker, *apply).stdout
    assert "Nothing changes." in gpubroker(own_broker, *apply).stdout


def test_a_policy_with_an_unknown_key_is_refused_with_the_nearest(
    broker: RunningBroker, tmp_path
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[policies.gentle]\nidel = "7m"\n')
    result = gpubroker(broker, "admin", "policies", "apply", str(file))
    assert result.returncode == 3
    assert "idle" in result.stderr


def test_the_doctor_finds_nothing_here(broker: RunningBroker) -> None:
    result = gpubroker(broker, "doctor", "--json")
    findings = {finding["name"]: finding for finding in json.loads(result.stdout)["checks"]}
    assert {name for name, finding in findings.items() if not finding["ok"]} <= {"server"}
    assert "2 simulated GPUs" in findings["devices"]["sentence"]


def test_the_doctor_sees_that_everything_is_switched_off(broker: RunningBroker) -> None:
    assert gpubroker(broker, "off").returncode == 0
    result = gpubroker(broker, "doctor")
    assert result.returncode == 1
    assert "gpubroker on" in result.stdout
    assert gpubroker(broker, "submit", "--", "true").returncode == 3
    assert gpubroker(broker, "on").returncode == 0
    assert "gpubroker is on." in gpubroker(broker, "doctor").stdout


def test_a_configured_broker_that_does_not_answer_is_down(broker: RunningBroker) -> None:
    result = gpubroker(broker, "status", GPUBROKER_URL="unix:///no/such/broker.sock")
    assert result.returncode == 4
    assert "does not answer" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_command_that_only_looks_leaves_no_broker_where_there_was_none(
    own_broker: RunningBroker,
) -> None:
    own_broker.stop()
    for command in ("status", "usage", "doctor"):
        assert gpubroker(own_broker, command, "--json").returncode in {0, 1}
        assert not own_broker.places.socket.exists(), command


def test_status_says_what_kind_of_devices_there_are(own_broker: RunningBroker) -> None:
    assert "2 simulated GPUs (2xH200)." in gpubroker(own_broker, "status").stdout
    own_broker.stop()
    text = gpubroker(own_broker, "status", GPUBROKER_SIMULATE="").stdout
    assert "NVIDIA GPUs" not in text.splitlines()[0]


def test_looking_with_another_wish_replaces_nothing_and_tells_the_difference(
    own_broker: RunningBroker,
) -> None:
    shown = gpubroker(own_broker, "gpus", GPUBROKER_SIMULATE="1xL4")
    assert "asks for simulated GPUs (1xL4)" in shown.stderr
    assert "NVIDIA H200 (simulated)" in shown.stdout
    assert own_broker.client.call(routes.HEALTH).pid == own_broker.process.pid


def test_the_broker_is_stopped_unless_it_is_in_use(own_broker: RunningBroker) -> None:
    with Holder(own_broker) as holder:
        holder.acquire()
        refused = gpubroker(own_broker, "broker", "--stop")
        assert refused.returncode == 3
        assert "leases: 1" in refused.stderr
        assert "--stop --force" in refused.stderr
        assert gpubroker(own_broker, "broker", "--stop", "--force").returncode == 0
    assert own_broker.process.wait(60) == 0
    assert "No broker runs." in gpubroker(own_broker, "broker", "--stop").stdout


def test_what_is_simulated_is_shown_and_set(own_broker: RunningBroker) -> None:
    command = ("admin", "simulation")
    assert "device: 2xH200." in gpubroker(own_broker, *command).stdout
    assert gpubroker(own_broker, *command, "2xToaster").returncode == 2
    assert answer(own_broker, *command, "1xL4", "--json") == {
        "simulates": "1xL4",
        "broker_goes_on": False,
    }
    assert own_broker.process.wait(60) == 0, (
        "it was replaced by nothing, and the next one is like that"
    )
    environ = {
        key: value for key, value in own_broker.environ.items() if key != "GPUBROKER_SIMULATE"
    }
    shown = subprocess.run(argv("gpus"), env=environ, capture_output=True, text=True, check=True)
    assert "NVIDIA L4 (simulated)" in shown.stdout
    assert "device: nothing." in gpubroker(own_broker, *command, "none").stdout


def test_after_a_death_status_says_what_became_of_the_gpu(own_broker: RunningBroker) -> None:
    with Holder(own_broker) as first:
        lease = first.acquire()
        first.kill()
        with Holder(own_broker, predecessor=first.id) as second:
            for view in own_broker.client.watch(routes.SESSION, second.id, wait_s=5):
                if view.last_lease is not None and view.last_lease.state == "cleared":
                    break
            (said,) = [
                line
                for line in gpubroker(own_broker, "status").stdout.splitlines()
                if "ago:" in line
            ]
            assert said.startswith("test.ipynb, ")
            assert "process" in said
            assert "process" in gpubroker(own_broker, "why", lease.id[:8]).stdout


def test_the_probe_reads_the_devices_without_a_broker(own_broker: RunningBroker) -> None:
    own_broker.stop()
    found = answer(own_broker, "probe", "--json")
    assert [gpu["model"] for gpu in found["gpus"]] == ["NVIDIA H200"] * 2
    assert {gpu["state"] for gpu in found["gpus"]} == {"ok"}
    assert {gpu["signals"]["engines"] for gpu in found["gpus"]} == {"ok"}
    assert gpubroker(own_broker, "probe").stdout.count("NVIDIA H200") == 2
    assert answer(own_broker, "probe", "nvidia1", "--json")["gpus"] == found["gpus"][1:]
    unknown = gpubroker(own_broker, "probe", "0:1")
    assert (unknown.returncode, "means no slot" in unknown.stderr) == (3, True)
    refused = gpubroker(own_broker, "probe", GPUBROKER_SIMULATE="2xNoSuchGpu")
    assert refused.returncode == 2
    assert "2xH200" in refused.stderr


def test_the_probe_leaves_folders_that_a_broker_can_use(folders) -> None:
    environ = {**os.environ, "GPUBROKER_SIMULATE": "1xH200"}
    subprocess.run(argv("probe"), env=environ, capture_output=True, check=True)
    assert (folders.runtime / "gpubroker").stat().st_mode & 0o777 == 0o700
    with running_broker("1xH200") as broker:
        assert broker.client.call(routes.HEALTH).ready


def test_the_doctor_names_slots_whose_use_nobody_can_see(folders) -> None:
    with running_broker("1xA100:3g.40gb+4g.40gb") as broker:
        result = gpubroker(broker, "doctor", "--json")
        assert result.returncode == 1
        (wrong,) = [check for check in json.loads(result.stdout)["checks"] if not check["ok"]]
        assert wrong["name"] == "use"
        assert "and 1 more is in use (the device has none)" in wrong["sentence"]
        assert "gpubroker admin sources add prometheus URL" in wrong["sentence"]
        refused = gpubroker(broker, "admin", "sources", "add", "prometheus", "ftp://exporter")
        assert (refused.returncode, "http://HOST:PORT/metrics" in refused.stderr) == (2, True)
        assert "none" in gpubroker(broker, "admin", "sources", "list").stdout
