"""A real JupyterLab as `make lab` starts it, in a world of its own, and what a person could ask of the rest from a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec

from jupyter_gpubroker.broker.api.values import name_of
from jupyter_gpubroker.client import BrokerClient, Places, routes
from jupyter_gpubroker.client.start import ensure_broker
from jupyter_gpubroker.wire.routes import Route
from jupyter_gpubroker.wire.views import LeaseView, SessionView
from tests.conftest import SCRUBBED_PREFIXES, processes_with, wait_until_gone

EXAMPLES = Path(__file__).parents[2] / "examples" / "single_node"
SIMULATED_GPUS = "1xH200"
START_S = 60.0
END_S = 20.0
LOOK_S = 0.05
LOG_END = 5_000

# What JupyterLab asks on its first start, answered: no news, please.
QUIET = {"checkForUpdates": False, "fetchNews": "false"}
QUIET_FILE = "lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"

View = TypeVar("View", bound=msgspec.Struct)


class Lab:
    """`broker` tells what the browser cannot show. `root` holds all of it, `work` the notebooks.

    `arguments` are the server's, beyond those that `make lab` would give.
    """

    def __init__(self, root: Path, policies: str, *arguments: str) -> None:
        self.root = root
        self.work = root / "work"
        self.environment = environment(root)
        self.places = Places.find(self.environment)
        self.broker = BrokerClient(self.places.user_url)
        self._token = secrets.token_hex(24)
        self._log = root / "lab.log"
        shutil.copytree(EXAMPLES, self.work)
        for path, text in (
            (self.places.policy, policies),
            # A person would look for what happened between two looks of a second; the tests have not the time.
            (self.places.config / "config.py", "c.BrokerApp.observe_every_s = 0.25\n"),
            (Path(self.environment["JUPYTER_CONFIG_DIR"], QUIET_FILE), json.dumps(QUIET)),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self._arguments = arguments
        self._server: subprocess.Popen[bytes] | None = None
        self._address = ""

    @property
    def url(self) -> str:
        """What one opens in a browser."""
        return f"{self._address}/lab?token={self._token}&reset"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._server = self._launch()
        told = Path(self.environment["JUPYTER_RUNTIME_DIR"], f"jpserver-{self._server.pid}.json")
        deadline_s = time.monotonic() + START_S
        while time.monotonic() < deadline_s and self._server.poll() is None:
            # Its address is not written down yet, or in part, or before it listens.
            with contextlib.suppress(OSError, ValueError, httpx.ConnectError):
                self._address = str(json.loads(told.read_bytes())["url"]).rstrip("/")
                self._request("GET", "/api/status")
                return
            time.sleep(LOOK_S)
        raise AssertionError(self._log.read_text()[-LOG_END:])

    def end(self) -> None:
        """End the server with its kernels, then the broker, the runner and its jobs."""
        self.broker.close()
        if self._server is not None:
            self._server.terminate()
            self._server.wait(END_S)
        for pid in processes_with(self.root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        left = wait_until_gone(self.root)
        assert not left, left

    def logs(self) -> list[tuple[str, str]]:
        """The last words of all that runs here, by file."""
        paths = [self._log, *sorted(self.places.state.glob("*.log"))]
        return [(path.name, path.read_text(errors="replace")[-LOG_END:]) for path in paths]

    def write(self, name: str, cells: Sequence[str]) -> None:
        """A notebook with these code cells."""
        notebook = {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "id": f"cell-{at}",
                    "metadata": {},
                    "outputs": [],
                    "source": cell.strip(),
                }
                for at, cell in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self.work / name).write_text(json.dumps(notebook))

    def gpubroker(self, *arguments: str) -> str:
        """Run the command line as one does in a terminal; what it says."""
        ended = subprocess.run(
            [sys.executable, "-m", "jupyter_gpubroker.cli", *arguments],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def submit(self, *command: str) -> str:
        """Submit a batch job; its id."""
        return str(json.loads(self.gpubroker("submit", "--json", "--", *command))["id"])

    def apply(self, policies: str) -> None:
        """Let these rules hold from now on."""
        ensure_broker(self.places, environ=self.environment)
        self.broker.call(routes.APPLY_POLICIES, body=policies.encode())

    def clear(self) -> None:
        """Shut down all kernels and cancel all jobs; nothing is held or waited for afterwards."""
        for kernel in self._request("GET", "/api/kernels"):
            self._request("DELETE", f"/api/kernels/{kernel['id']}")
        for job in self.broker.call(routes.JOBS).jobs:
            if job.outcome is None:
                self.broker.call(routes.CANCEL_JOB, job.id)
        self.until(routes.LEASES, lambda view: not view.leases)
        self.until(routes.QUEUE, lambda view: not view.waiting)

    # --- what the broker knows ----------------------------------------------------------------------------------------

    def until(
        self, route: Route[View], is_so: Callable[[View], bool], thing_id: str | None = None
    ) -> View:
        """What a route answers as soon as something is so of it; pytest's time limit ends the wait."""
        for view in self.broker.watch(route, thing_id):
            if is_so(view):
                return view
        raise AssertionError("a watch has no end")

    def session(self, notebook: str) -> SessionView:
        """The session of a notebook's kernel, once its server has told the broker of it."""

        def of_it(sessions: Sequence[SessionView]) -> list[SessionView]:
            shown = name_of(notebook)
            return [session for session in sessions if Path(session.name).name == shown]

        view = self.until(routes.SESSIONS, lambda view: bool(of_it(view.sessions)))
        (session,) = of_it(view.sessions)
        return session

    def lease(self, notebook: str) -> LeaseView:
        """What a notebook's kernel holds."""
        (lease,) = self.session(notebook).leases
        return lease

    # --- inside -------------------------------------------------------------------------------------------------------

    def _launch(self) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "jupyterlab",
                    "--allow-root",
                    "--no-browser",
                    "--ServerApp.ip=127.0.0.1",
                    "--ServerApp.port=0",
                    *self._arguments,
                ],
                cwd=self.work,
                env={**self.environment, "JUPYTER_TOKEN": self._token},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _request(self, method: str, path: str) -> Any:
        headers = {"Authorization": f"token {self._token}"}
        response = httpx.request(method, self._address + path, headers=headers, trust_env=False)
        response.raise_for_status()
        return response.json() if response.content else None


def environment(root: Path) -> dict[str, str]:
    """The environment that `make lab` gives, with folders below `root` and nothing of the user's."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith(SCRUBBED_PREFIXES)}
    folders = {
        name: root / name.lower()
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    } | {
        "XDG_RUNTIME_DIR": root / "run",
        "XDG_STATE_HOME": root / "state",
        "XDG_CONFIG_HOME": root / "config",
    }
    for folder in folders.values():
        folder.mkdir(mode=0o700)
    path = [str(Path(sys.executable).parent), kept.get("PATH", os.defpath)]
    return {
        **kept,
        **{name: str(folder) for name, folder in folders.items()},
        "PATH": os.pathsep.join(path),
        "GPUBROKER_SIMULATE": SIMULATED_GPUS,
    }
