"""The quickstart notebook, run cell by cell in a real Jupyter server, with a person's answers where it asks for them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import nbformat
import pytest

from jupyter_gpubroker.cli.demo.notebook import JupyterServer
from jupyter_gpubroker.cli.demo.place import DemoPlace, example
from jupyter_gpubroker.client import AsyncBrokerClient, Places, routes

NOTEBOOK = Path(__file__).parents[3] / "examples" / "single_node" / "quickstart.ipynb"
BY_HAND = "by-hand"


@pytest.fixture
def notebook():
    return json.loads(NOTEBOOK.read_bytes())


@pytest.fixture
def place(folders, monkeypatch):
    """Where somebody who has just cloned the examples stands: the files beside the notebook, no rules of their own."""
    monkeypatch.setenv("TMPDIR", str(folders.root))
    made = DemoPlace("2xH200")
    (made.root / "config" / "gpubroker" / "policy.toml").unlink()
    (made.work / "policy.toml").write_text(example("policy.toml"))
    yield made
    made.end()


def test_it_is_shipped_without_outputs(notebook):
    nbformat.validate(notebook)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells)


@pytest.mark.asyncio
@pytest.mark.timeout(150)
async def test_its_story_happens_as_it_is_told(notebook, place):
    server = JupyterServer(place)
    await server.start()
    opened = await server.open_notebook("quickstart.ipynb")
    said = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        running = opened.run("".join(cell["source"]))
        if BY_HAND in cell["metadata"].get("tags", []):
            await opened.prompted()
            await anext(ended_jobs(place))
            opened.answer("p len(results)")
            await opened.prompted()
            opened.answer("c")
        said[cell["id"]] = await running.ended()
    everything = "\n".join(said.values())
    assert "2 simulated GPUs" in everything
    assert "of 360 test digits recognised" in everything
    assert "finished" in everything
    assert "1000000 285" in everything, "the variables lived through it"
    assert [text for text in opened.displays if "goes back" in text], "the notice was shown"
    await opened.close()


async def ended_jobs(place: DemoPlace) -> AsyncIterator[str]:
    """Jobs as they end, seen from outside while the notebook stands at its breakpoint."""
    async with AsyncBrokerClient(Places.find(place.environment).url) as broker:
        async for view in broker.watch(routes.JOBS):
            for job in view.jobs:
                if job.state == "ended":
                    assert job.outcome == "finished", job.sentence
                    yield job.id
