"""The client is imported by every Jupyter server and command, so it must stay light."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "tornado",
    "sqlalchemy",
    "alembic",
    "jupyter_server",
    "jupyter_client",
    "traitlets",
    "IPython",
)


@pytest.mark.parametrize("module", ["client", "client.http", "client.start", "client.places"])
def test_the_client_imports_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, jupyter_gpubroker.{module}; print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_places_do_not_need_the_http_client() -> None:
    """The broker looks its places up before anything else, and must listen within a second."""
    code = "import sys, jupyter_gpubroker.client.places; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
