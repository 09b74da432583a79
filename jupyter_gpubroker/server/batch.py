"""Batch jobs for who has a browser alone: submits what the page names, as one would in a terminal, and reads logs.

Submitting is done as `gpubroker submit` does it, in a process of its own: command, folder and environment go into this
user's spool, and the broker hears of an id. A notebook is copied first, without outputs, and the copy is run in place: what
it shows lies beside the original, which one can go on editing. Logs are read from where the runner writes them, from any
offset, so that a page can follow.

No code of ours is run from a folder that the page names: there, Python would take its `uuid.py` for its own.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import shlex
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import msgspec
from jupyter_core.utils import ensure_async
from msgspec import Meta
from tornado import web

from ..client.output import STREAMS, output_file
from ..client.places import Places
from ..wire.bodies import QueueName, SpanMs, SpecBody
from ..wire.views import JobView, Problem
from .proxy import NoPassage, problem

SUBMIT_S = 60.0
OUTPUT_BYTES_MAX = 64 * 1024
SUBMIT_MODULE = "jupyter_gpubroker.runner.submit"
ROOT = Path("/")
TOO_SLOW = 504
REFUSED = 3  # its exit status; it then prints the broker's problem
SCRIPTS = {".jl", ".py", ".r", ".R", ".sh"}
NOTEBOOK_MODULE = "jupyter_gpubroker.runner.notebook"

_Path = Annotated[str, Meta(max_length=4096)]


class SubmitBody(msgspec.Struct, frozen=True):
    """Either `command`, as one would type it (words and quotes, no shell), or `notebook`; paths are the server's own."""

    command: Annotated[str, Meta(max_length=32_768)] | None = None
    notebook: _Path | None = None
    folder: _Path = ""
    name: Annotated[str, Meta(max_length=256)] = ""
    spec: SpecBody = SpecBody()
    queue: QueueName = "batch"
    time_limit_ms: SpanMs | None = None
    preemptible: bool = False


class Piece(msgspec.Struct, frozen=True):
    """Output from byte `start` to before byte `end`; whoever asks again from `end` misses nothing."""

    start: int
    end: int
    text: str


class OutputView(msgspec.Struct, frozen=True):
    stdout: Piece
    stderr: Piece


class Batch:
    """`contents` is the server's contents manager, `places` says where this user's broker and spool are."""

    def __init__(self, places: Places, contents: Any) -> None:
        self._places = places
        self._contents = contents

    async def submit(self, body: SubmitBody) -> JobView:
        """The job, queued. Raises NoPassage with the sentence that says why not."""
        if body.notebook is not None:
            path = await self._copy(body.notebook.strip("/"))
            name = body.name or PurePosixPath(body.notebook).name
            argv = [sys.executable, "-m", NOTEBOOK_MODULE, str(self._on_disk(path))]
            try:
                return await self._run(argv, ROOT, name, body)
            except NoPassage as refusal:
                if (
                    refusal.problem.status != TOO_SLOW
                ):  # then it may have been submitted all the same
                    await self._remove(path)
                raise
        argv = words(body.command or "")
        return await self._run(argv, self._folder(body.folder), body.name or title(argv), body)

    async def output(self, job_id: str, starts: Mapping[str, int | None]) -> OutputView:
        """What each stream has from there on, at most `OUTPUT_BYTES_MAX`; from None on, the last of it."""
        paths = {name: output_file(self._places.state, job_id, name) for name in STREAMS}
        pieces = [asyncio.to_thread(read, paths[name], starts.get(name)) for name in STREAMS]
        return OutputView(*await asyncio.gather(*pieces))

    async def _run(self, argv: list[str], folder: Path, name: str, body: SubmitBody) -> JobView:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            SUBMIT_MODULE,
            folder,
            cwd=ROOT,
            env={**os.environ, "GPUBROKER_URL": self._places.url},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        submission = {**msgspec.structs.asdict(body), "argv": argv, "name": name}
        try:
            stdout, stderr = await asyncio.wait_for(
                process.communicate(msgspec.json.encode(submission)), SUBMIT_S
            )
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            raise NoPassage(problem(TOO_SLOW, "submit_too_slow")) from None
        if process.returncode == 0:
            return msgspec.json.decode(stdout, type=JobView)
        if process.returncode == REFUSED:
            raise NoPassage(msgspec.json.decode(stdout, type=Problem))
        why = stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise NoPassage(problem(503, "not_submitted", why=why))

    async def _copy(self, path: str) -> str:
        """Write a copy of the notebook as it is on disk, without outputs, beside it; its path."""
        try:
            model = await ensure_async(self._contents.get(path, type="notebook"))
        except web.HTTPError as error:
            raise NoPassage(problem(404, "no_such_notebook", path=path)) from error
        for cell in model["content"]["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = [], None
        at = PurePosixPath(path)
        stamp = f"{datetime.now().astimezone():%Y-%m-%d %H.%M.%S}"
        target = str(at.with_name(f"{at.stem} {stamp}{at.suffix}"))
        if await ensure_async(self._contents.file_exists(target)):
            raise NoPassage(problem(409, "just_submitted"))
        new = {"type": "notebook", "format": "json", "content": model["content"]}
        await ensure_async(self._contents.save(new, target))
        return target

    async def _remove(self, path: str) -> None:
        """Take a copy away again. Not by the contents manager, which would keep it in the bin."""
        self._on_disk(path).unlink(missing_ok=True)
        await ensure_async(self._contents.checkpoints.delete_all_checkpoints(path))

    def _folder(self, path: str) -> Path:
        folder = self._on_disk(path)
        if not folder.is_dir():
            raise NoPassage(problem(404, "no_such_folder", path=path))
        return folder

    def _on_disk(self, path: str) -> Path:
        """Jobs are processes: they need a real folder, and some servers keep notebooks elsewhere."""
        if not hasattr(self._contents, "_get_os_path"):
            raise NoPassage(problem(422, "not_on_disk"))
        try:
            return Path(self._contents._get_os_path(path.strip("/")))
        except web.HTTPError as error:
            raise NoPassage(problem(404, "no_such_folder", path=path)) from error


def words(command: str) -> list[str]:
    """The command's words, as a shell would split them, and nothing else that a shell does."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise NoPassage(problem(422, "open_quote")) from error
    if not argv or not argv[0]:
        raise NoPassage(problem(422, "no_command"))
    if "\0" in command:
        raise NoPassage(problem(422, "nul_in_command"))
    return argv


def title(argv: list[str]) -> str:
    """What to call it: its script, where one is named, else its program. Never more of the command: others may see it."""
    paths = [PurePosixPath(word) for word in argv]
    return next((path.name for path in paths if path.suffix in SCRIPTS), paths[0].name)


def read(path: Path, start: int | None) -> Piece:
    """A file from `start` on, or its end; one that is not there yet is empty."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return Piece(0, 0, "")
    with file:
        size = os.fstat(file.fileno()).st_size
        begin = max(0, size - OUTPUT_BYTES_MAX) if start is None else min(start, size)
        file.seek(begin)
        content = file.read(OUTPUT_BYTES_MAX)
    # A character whose end is not there yet comes with the next piece.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content)
    held_back, _ = decoder.getstate()
    return Piece(begin, begin + len(content) - len(held_back), text)
