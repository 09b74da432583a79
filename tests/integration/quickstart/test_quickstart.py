"""The quickstart notebook, run cell by cell in a real Jupyter server, with a person's answers where it asks for them."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import nbformat
import pytest

from jupyter_gpubroker.cli.demo.notebook import JupyterServer
from jupyter_gpubroker.cli.demo.place import DemoPlace
from jupyter_gpubroker.client import AsyncBrokerClient, Places, routes
from jupyter_gpubroker.quantities import duration_ms

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

NOTEBOOK = Path(__file__).parents[3] / "examples" / "single_node" / "quickstart.ipynb"
BY_HAND = "by-hand"
# Nobody reads the notice here.
HURRY = {'idle = "5s"': 'idle = "1s"', 'notice = "20s"': 'notice = "1s"'}


@pytest.fixture
def notebook():
    return json.loads(NOTEBOOK.read_bytes())


@pytest.fixture
def place(folders, monkeypatch):
    """Where somebody who has just cloned the examples stands: the files beside the notebook, no rules of their own."""
    monkeypatch.setenv("TMPDIR", str(folders.root))
    made = DemoPlace("2xH200")
    (made.root / "config" / "gpubroker" / "policy.toml").unlink()
    yield made
    made.end()


def test_its_notice_can_be_read_and_its_limits_are_its_own(notebook):
    (rules,) = [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if "policies apply" in "".join(cell["source"])
    ]
    document = tomllib.loads(rules.partition("<<END\n")[2].rpartition("END")[0])
    assert duration_ms(document["policies"]["quickstart"]["notice"]) >= 15_000
    assert set(document) == {"policies", "queues"}
    assert set(document["policies"]) == set(document["queues"]) == {"quickstart"}


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
        source = "".join(cell["source"])
        for told, short in HURRY.items():
            source = source.replace(told, short)
        running = opened.run(source)
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
    assert [text for text in opened.displays if "GPUs go back" in text], "the notice was shown"
    await opened.close()


async def ended_jobs(place: DemoPlace) -> AsyncIterator[str]:
    """Jobs as they end, seen from outside while the notebook stands at its breakpoint."""
    async with AsyncBrokerClient(Places.find(place.environment).url) as broker:
        async for view in broker.watch(routes.JOBS):
            for job in view.jobs:
                if job.state == "ended":
                    assert job.outcome == "finished", job.sentence
                    yield job.id
