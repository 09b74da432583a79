"""Batch jobs from a page: who may submit them, what is refused in words, and logs that can be followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import pytest_asyncio
from jupyter_server.services.contents.filemanager import AsyncFileContentsManager
from jupyter_server.services.contents.manager import AsyncContentsManager

from jupyter_gpubroker.client.output import output_file
from jupyter_gpubroker.server import batch, proxy
from jupyter_gpubroker.server.proxy import NoPassage
from tests.conftest import Folders
from tests.unit.server import test_handlers
from tests.unit.server.test_handlers import ReadersOnly, Server, serving

pytestmark = pytest.mark.asyncio
broker = test_handlers.broker

JOBS = f"/../../{proxy.BATCH}/jobs"
JOB = "6" * 32


@pytest_asyncio.fixture
async def server(broker: Any, tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(broker, contents=AsyncFileContentsManager(root_dir=str(tmp_path))) as made:
        yield made


def write_notebook(path: Path) -> None:
    cell = nbformat.v4.new_code_cell("1 + 1", execution_count=3)
    cell.outputs = [nbformat.v4.new_output("stream", text="2")]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)


def notebooks(folder: Path) -> list[str]:
    """Those in it, with their checkpoints."""
    return [path.name for path in folder.rglob("*.ipynb")]


# --- who may submit -------------------------------------------------------------------------------


async def test_nobody_submits_or_reads_without_a_login(server: Server) -> None:
    submitted = await server.stranger.post(JOBS, json={"command": "true"})
    read = await server.stranger.get(f"{JOBS}/{JOB}/output")
    assert {submitted.status_code, read.status_code} <= {401, 403}


async def test_who_may_not_run_code_may_not_submit_a_job(broker: Any, folders: Folders) -> None:
    async with serving(broker, authorizer=ReadersOnly) as server:
        answer = await server.browser.post(JOBS, json={"command": "true"})
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
        assert (await server.browser.get(f"{JOBS}/{JOB}/output")).status_code == 200


async def test_a_form_of_another_site_submits_nothing(server: Server) -> None:
    answer = await server.browser.post(JOBS, content=b'{"command": "true"}')
    assert (answer.status_code, answer.json()["code"]) == (415, "wrong_content_type")


# --- what is refused in words ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"command": " "}, "no_command"),
        ({"command": "''"}, "no_command"),
        ({"command": "true \0"}, "nul_in_command"),
        ({"command": "python 'train.py"}, "open_quote"),
        ({"command": "true", "folder": "nowhere"}, "no_such_folder"),
        ({"command": "true", "folder": "../../etc"}, "no_such_folder"),
        ({"notebook": "nothing.ipynb"}, "no_such_notebook"),
        ({"command": "true", "time_limit_ms": 1}, "bad_body"),
    ],
)
async def test_what_cannot_be_run_is_refused_in_both_languages(
    server: Server, body: dict[str, Any], code: str
) -> None:
    answer = await server.browser.post(JOBS, json=body)
    problem = answer.json()
    assert (answer.status_code // 100, problem["code"]) == (4, code)
    assert problem["detail"] != problem["detail_es"]


async def test_a_server_without_files_of_its_own_says_so(broker: Any) -> None:
    async with serving(broker, contents=AsyncContentsManager()) as server:
        answer = await server.browser.post(JOBS, json={"command": "true"})
    assert answer.json()["code"] == "not_on_disk"


async def test_a_command_is_split_into_words_and_never_read_by_a_shell() -> None:
    assert batch.words("python 'my file.py' --lr=0.1 $HOME ; ls") == [
        "python",
        "my file.py",
        "--lr=0.1",
        "$HOME",
        ";",
        "ls",
    ]


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("python -u deep/train.py --key=secret", "train.py"),
        ("/usr/bin/python3 -c pass", "python3"),
    ],
)
async def test_a_job_is_called_by_its_script(command: str, title: str) -> None:
    assert batch.title(batch.words(command)) == title


# --- what is run ----------------------------------------------------------------------------------


async def test_a_notebook_is_run_as_a_copy_without_outputs(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    write_notebook(folder / "train.ipynb")
    ran = []

    async def noting(_: Any, argv: list[str], cwd: Path, name: str, body: Any) -> None:
        ran.append((argv, cwd, name))
        raise NoPassage(proxy.problem(504, "submit_too_slow"))

    monkeypatch.setattr(batch.Batch, "_run", noting)
    await server.browser.post(JOBS, json={"notebook": "deep/train.ipynb"})
    ((argv, cwd, name),) = ran
    # Where nobody puts modules, and nothing that could be an option.
    assert (cwd, name) == (Path("/"), "train.ipynb")
    copy = Path(argv[-1])
    assert (copy.parent, copy.is_absolute()) == (folder, True)
    assert copy.name.startswith("train 20")
    (cell,) = nbformat.read(copy, as_version=4).cells
    assert (cell.source, cell.outputs, cell.execution_count) == ("1 + 1", [], None)
    (original,) = nbformat.read(folder / "train.ipynb", as_version=4).cells
    assert original.outputs


async def test_a_notebook_that_is_refused_leaves_no_copy(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_notebook(tmp_path / "train.ipynb")

    async def refusing(*_: Any) -> None:
        raise NoPassage(proxy.problem(503, "not_submitted", why="That was all."))

    monkeypatch.setattr(batch.Batch, "_run", refusing)
    await server.browser.post(JOBS, json={"notebook": "train.ipynb"})
    assert notebooks(tmp_path) == ["train.ipynb"]


async def test_no_code_of_the_folder_is_run_and_the_brokers_refusal_reaches_the_page(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = '{"status":422,"code":"no","title":"No","detail":"No.","detail_es":"No.","values":{}}'
    modules = tmp_path / "modules"
    modules.mkdir()
    (tmp_path / "uuid.py").write_text("raise SystemExit('This was not to run.')")
    module = modules / "refusing.py"
    module.write_text(f"import sys, uuid; print({problem!r}); sys.exit({batch.REFUSED})")
    monkeypatch.setenv("PYTHONPATH", str(modules))
    monkeypatch.setattr(batch, "SUBMIT_MODULE", "refusing")
    answer = await server.browser.post(JOBS, json={"command": "true"})
    assert (answer.status_code, answer.json()["code"]) == (422, "no")


# --- logs -----------------------------------------------------------------------------------------


async def test_a_log_is_followed_from_where_one_left_off(server: Server) -> None:
    path = output_file(server.link.places.state, JOB, "stdout")
    assert (await server.browser.get(f"{JOBS}/{JOB}/output")).json()["stdout"]["text"] == ""
    path.parent.mkdir(parents=True)
    path.write_bytes("one €".encode()[:-1])
    first = (await server.browser.get(f"{JOBS}/{JOB}/output")).json()["stdout"]
    assert first == {"start": 0, "end": 4, "text": "one "}
    path.write_bytes("one € two".encode())
    at = {"stdout": first["end"], "stderr": 0}
    then = (await server.browser.get(f"{JOBS}/{JOB}/output", params=at)).json()
    assert then["stdout"] == {"start": 4, "end": 11, "text": "€ two"}
    assert then["stderr"]["text"] == ""


async def test_of_a_long_log_the_end_comes_first(server: Server) -> None:
    path = output_file(server.link.places.state, JOB, "stderr")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * batch.OUTPUT_BYTES_MAX + b"the end")
    piece = await asyncio.to_thread(batch.read, path, None)
    assert (piece.start, len(piece.text)) == (7, batch.OUTPUT_BYTES_MAX)
    assert piece.text.endswith("the end")
