"""Where a batch job's output lies: the runner writes it, command line and Jupyter server read it as it grows."""

from __future__ import annotations

from pathlib import Path

STREAMS = ("stdout", "stderr")


def output_file(state: Path, job_id: str, stream: str) -> Path:
    """The file of a stream, below the state folder of the job's owner; it exists once the job was started."""
    return state / "jobs" / job_id / f"{stream}.log"
