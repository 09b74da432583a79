"""How a broker comes and goes: started once, on demand, with nothing inherited; gone when of no use."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from jupyter_gpubroker.client import (
    BrokerClient,
    BrokerDown,
    BrokerError,
    Places,
    ensure_broker,
    routes,
)
from jupyter_gpubroker.client.start import scrubbed
from tests.support.broker import Holder, running_broker


def until(is_so: Callable[[], bool], within_s: float = 10.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline_s, "it did not come to be"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.fixture
def simulated(folders, monkeypatch) -> Places:
    """Places in which a client may start a broker that ends soon."""
    monkeypatch.setenv("GPUBROKER_SIMULATE", "1xH200")
    places = Places.find()
    places.config.mkdir()
    (places.config / "config.json").write_text('{"BrokerApp": {"idle_exit_s": 2.0}}')
    return places


def test_many_starters_get_one_broker(simulated: Places) -> None:
    code = (
        "from jupyter_gpubroker.client import *\n"
        "with BrokerClient(ensure_broker()) as broker: print(broker.call(routes.HEALTH).pid)"
    )
    starters = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    pids = {starter.communicate(timeout=60)[0].strip() for starter in starters}
    assert len(pids) == 1
    (pid,) = map(int, pids)
    assert is_alive(pid)
    until(lambda: not is_alive(pid), 30)  # by itself: nothing held, nobody connected
    assert not simulated.socket.exists()


def test_a_started_broker_inherits_no_marks_and_is_nobodys_child(
    simulated: Places, monkeypatch
) -> None:
    for name in ("GPUBROKER_SESSION", "GPUBROKER_JOB", "CUDA_VISIBLE_DEVICES", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, "x")
    with BrokerClient(ensure_broker()) as broker:
        pid = broker.call(routes.HEALTH).pid
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"GPUBROKER_SIMULATE=1xH200" in environ
    for mark in (b"GPUBROKER_SESSION", b"GPUBROKER_JOB", b"CUDA_VISIBLE_DEVICES", b"PYTHONSTARTUP"):
        assert mark not in environ
    status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    parent, session = int(status[1]), int(status[3])
    assert parent != os.getpid()
    assert session != os.getsid(0)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not is_alive(pid))


def test_what_is_passed_on_is_a_short_list() -> None:
    environ = {
        "PATH": "p",
        "LC_ALL": "C",
        "XDG_STATE_HOME": "/s",
        "GPUBROKER_SESSION": "s",
        "SECRET": "x",
        "PYTHONPATH": "/evil",
    }
    assert scrubbed(environ) == {"PATH": "p", "LC_ALL": "C", "XDG_STATE_HOME": "/s"}


def test_a_broker_that_cannot_start_says_why(folders, monkeypatch) -> None:
    monkeypatch.setenv("GPUBROKER_SIMULATE", "2xToaster")
    with pytest.raises(BrokerDown, match=r"could not start: .*Toaster"):
        ensure_broker()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            '{"BrokerApp": {"idle_exit": 2.0}}',
            "There is no configuration key c.BrokerApp.idle_exit. Did you mean c.BrokerApp.idle_exit_s?",
        ),
        ('{"BrokerApp": {"idle_exit_s": -2.0}}', "idle_exit_s"),
        ('{"BrokerApp": ', "config.{py,json}"),
    ],
)
def test_a_wrong_configuration_names_the_key(folders, config: str, sentence: str) -> None:
    places = Places.find()
    places.config.mkdir()
    (places.config / "config.json").write_text(config)
    with pytest.raises(BrokerDown) as down:
        ensure_broker()
    assert sentence in str(down.value)


def test_a_wrong_policy_names_the_key(folders) -> None:
    places = Places.find()
    places.config.mkdir()
    places.policy.write_text('[policies.gentle]\nidel = "1s"')
    with pytest.raises(
        BrokerDown, match=r"policy.toml: policies.gentle has no key 'idel'. Did you mean 'idle'\?"
    ):
        ensure_broker()


def test_a_policy_file_is_in_force_from_the_start(folders) -> None:
    with running_broker("1xH200", policy='[policies.gentle]\nidle = "2s"') as broker:
        tried = broker.client.call(
            routes.APPLY_POLICIES, body=b'[policies.gentle]\nidle = "3s"', query={"dry_run": "1"}
        )
        assert tried.changes == ("policies.gentle.idle: 2 s -> 3 s",)


def test_a_configured_broker_that_is_down_is_not_replaced(folders, monkeypatch) -> None:
    monkeypatch.setenv("GPUBROKER_URL", f"unix://{folders.runtime}/none.sock")
    with pytest.raises(BrokerDown, match="does not answer"):
        ensure_broker()
    assert not Places.find().lock.exists()


def test_a_second_broker_in_one_place_ends_at_once(folders) -> None:
    with running_broker("1xH200") as broker:
        command = [sys.executable, "-m", "jupyter_gpubroker.broker"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert second.returncode == 3
        assert "Another broker" in second.stderr
        assert broker.client.call(routes.HEALTH).pid == broker.process.pid


def test_a_socket_left_by_a_dead_broker_is_replaced(folders) -> None:
    with running_broker("1xH200") as broker:
        broker.kill()
        assert broker.places.socket.exists()
        broker.start()
        assert broker.client.call(routes.HEALTH).pid == broker.process.pid


def test_a_broker_whose_socket_was_taken_away_ends(folders) -> None:
    with running_broker("1xH200") as broker:
        broker.places.socket.unlink()
        assert broker.process.wait(60) == 0


def test_a_broker_that_is_needed_stays(folders) -> None:
    arguments = ("--idle-exit-s=0.4", "--observe-every-s=0.1")
    with running_broker("1xH200", arguments=arguments) as broker, Holder(broker) as holder:
        holder.acquire()
        broker.client.close()
        time.sleep(1.2)  # three times as long as it would stay unused
        assert broker.process.poll() is None
        holder.kill()
        assert broker.process.wait(60) == 0


def test_term_ends_it_although_somebody_waits(folders) -> None:
    with running_broker("1xH200") as broker, ThreadPoolExecutor() as pool:
        with BrokerClient(broker.url) as other:
            watch = other.watch(routes.QUEUE)
            next(watch)
            waiting = pool.submit(next, watch)
            assert broker.stop() == 0
            with pytest.raises(BrokerDown):
                waiting.result(10)
        assert not broker.places.socket.exists()


def test_it_imports_nothing_that_would_keep_it_from_listening_within_a_second() -> None:
    """The time itself is measured by `tests/perf/request_to_grant.py`."""
    code = (
        "import sys, jupyter_gpubroker.broker.app, jupyter_gpubroker.broker.service\n"
        "import jupyter_gpubroker.agent.local; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "sqlalchemy.dialects.sqlite" in imported
    assert not imported & {
        "alembic",
        "httpx",
        "jupyter_server",
        "IPython",
        "pynvml",
        "sqlalchemy.dialects.postgresql",
        "tornado.httpclient",
    }


def test_without_a_gpu_the_broker_stays_and_says_so(folders, monkeypatch) -> None:
    if any(Path("/dev").glob("nvidia*")):
        pytest.skip("this machine has an NVIDIA device")
    with running_broker("") as broker:
        gpus = broker.client.call(routes.GPUS)
        assert gpus.gpus == ()
        assert gpus.problem is not None
        assert gpus.problem.sentence.startswith("There is no NVIDIA GPU here")
        with (
            Holder(broker) as holder,
            pytest.raises(BrokerError, match="There is no NVIDIA GPU here"),
        ):
            holder.ask()


def test_clients_that_do_not_read_their_answers_do_not_keep_a_broker_from_ending(folders) -> None:
    many_calls = b"GET /v1/openapi.json HTTP/1.1\r\nHost: broker\r\n\r\n" * 200
    with running_broker("1xH200") as broker, ExitStack() as clients:
        for _ in range(20):
            client = clients.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(broker.places.socket))
            client.setblocking(False)
            with suppress(BlockingIOError):
                client.send(many_calls)
        broker.client.call(routes.HEALTH)
        assert broker.stop() == 0
        assert not broker.places.socket.exists()


def test_a_database_that_contradicts_itself_can_be_read_and_nothing_is_granted(folders) -> None:
    with running_broker("1xH200") as broker, Holder(broker) as holder:
        holder.acquire()
        broker.kill()
        with closing(sqlite3.connect(broker.places.database)) as database, database:
            database.execute("UPDATE slots SET state = 'free'")
        broker.start()
        health = broker.client.call(routes.HEALTH)
        assert health.status == "degraded"
        assert health.problem is not None
        assert "contradicts itself" in health.problem.sentence
        with pytest.raises(BrokerError) as refused:
            broker.client.call(routes.APPLY_POLICIES, body=b"")
        assert refused.value.status == 503
