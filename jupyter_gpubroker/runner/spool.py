"""What a batch job runs, on its owner's disk: `spool/ID.json`, and where its output goes: `jobs/ID/`.

The broker knows only the id. Specs hold the submitter's whole environment, so files are 0600 in folders 0700 and are
removed when the job has ended. Text goes through JSON with surrogates escaped: arguments need not be UTF-8.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ..client.output import output_file

STALE_S = 24 * 3600


class SpecLost(Exception):
    """The spool has no usable spec for the job; the message is for the job's owner."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A command as it was submitted. `argv` is passed to exec as it is, never to a shell."""

    argv: tuple[str, ...]
    cwd: str
    umask: int
    environment: dict[str, str]

    @classmethod
    def of_this_process(cls, argv: tuple[str, ...]) -> JobSpec:
        """`argv`, to run where and as this process runs."""
        umask = os.umask(0o077)
        os.umask(umask)
        return cls(argv, str(Path.cwd()), umask, dict(os.environ))


class Spool:
    """The job files below a state folder. Ids are checked by the broker and the CLI: 32 hex digits."""

    def __init__(self, state_folder: Path) -> None:
        self._state = state_folder
        self._specs = state_folder / "spool"
        self._outputs = state_folder / "jobs"

    def write(self, job_id: str, spec: JobSpec) -> None:
        """Keep `spec` for the runner; whole or not at all."""
        self._specs.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._specs / f".{job_id}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(json.dumps(asdict(spec)).encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._specs / f"{job_id}.json")

    def read(self, job_id: str) -> JobSpec:
        """The spec of a job. Raises SpecLost."""
        path = self._specs / f"{job_id}.json"
        try:
            raw = json.loads(path.read_bytes())
            return JobSpec(tuple(raw["argv"]), raw["cwd"], raw["umask"], raw["environment"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SpecLost(
                f"gpubroker: the command of this job cannot be read any more from {path} "
                f"({type(error).__name__}). Submit it again."
            ) from error

    def forget(self, job_id: str) -> None:
        """Remove the spec; the output stays."""
        (self._specs / f"{job_id}.json").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove specs older than a day: for a runner that starts, whose jobs are all to come."""
        if not self._specs.is_dir():
            return
        for path in self._specs.iterdir():
            if time.time() - path.stat().st_mtime > STALE_S:
                path.unlink(missing_ok=True)

    def output(self, job_id: str, stream: str) -> Path:
        """The file of `stdout` or `stderr`; it exists once the job was started."""
        return output_file(self._state, job_id, stream)

    def open_outputs(self, job_id: str) -> tuple[int, int]:
        """Descriptors of stdout and stderr, appending: a requeued job goes on in the same files."""
        folder = self.output(job_id, "stdout").parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        stdout = os.open(self.output(job_id, "stdout"), flags, 0o600)
        return stdout, os.open(self.output(job_id, "stderr"), flags, 0o600)

    def job_ids(self) -> list[str]:
        """Jobs whose output is here, also those the broker has forgotten."""
        return [folder.name for folder in self._outputs.iterdir()] if self._outputs.is_dir() else []
