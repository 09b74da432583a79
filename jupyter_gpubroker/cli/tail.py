"""Reads the output files of a batch job, once or as they grow."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..client.output import STREAMS

if TYPE_CHECKING:
    from ..client import BrokerClient
    from ..runner.spool import Spool

LOOK_S = 0.05
PIECE_BYTES = 64 * 1024


class _Stream:
    """One output file and how much of it was shown. Bytes pass unchanged; with JSON, as text."""

    def __init__(self, name: str, path: Path, as_json: bool) -> None:
        self._name = name
        self._path = path
        self._as_json = as_json
        self._shown_bytes = 0
        self._is_open = True

    def show(self) -> None:
        """Everything that was added since."""
        for piece in self._pieces():
            if self._as_json:
                text = piece.decode("utf-8", errors="replace")
                click.echo(json.dumps({"stream": self._name, "text": text}))
            else:
                target = sys.stdout if self._name == "stdout" else sys.stderr
                target.buffer.write(piece)
                target.buffer.flush()

    def _pieces(self) -> Iterator[bytes]:
        try:
            file = self._path.open("rb")
        except FileNotFoundError:  # not started yet
            return
        with file:
            file.seek(self._shown_bytes)
            while piece := file.read(PIECE_BYTES):
                self._shown_bytes += len(piece)
                yield piece


def echo_output(spool: Spool, job_id: str, as_json: bool) -> None:
    """What is there now."""
    for stream in _streams(spool, job_id, as_json):
        stream.show()


def follow_output(broker: BrokerClient, spool: Spool, job_id: str, as_json: bool) -> None:
    """What is there and what comes, until the job has ended."""
    has_ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(broker, job_id, has_ended), daemon=True)
    watcher.start()
    streams = _streams(spool, job_id, as_json)
    while True:
        is_last_look = has_ended.wait(LOOK_S)
        for stream in streams:
            stream.show()
        if is_last_look:
            return


def _streams(spool: Spool, job_id: str, as_json: bool) -> list[_Stream]:
    return [_Stream(name, spool.output(job_id, name), as_json) for name in STREAMS]


def _watch(broker: BrokerClient, job_id: str, has_ended: threading.Event) -> None:
    """Wait for the end of the job; one the broker does not know any more has ended."""
    from ..client import BrokerDown, BrokerError, ensure_broker, routes

    while not has_ended.is_set():
        try:
            for job in broker.watch(routes.JOB, job_id):
                if job.state == "ended":
                    has_ended.set()
                    return
        except BrokerDown:
            ensure_broker()
        except BrokerError:
            has_ended.set()
