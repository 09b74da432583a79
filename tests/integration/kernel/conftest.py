"""A broker whose limits are short, and kernels that borrow from it: one of each for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Folders
from tests.integration.kernel.kernels import Kernel, running_kernel
from tests.support.broker import RunningBroker, running_broker

QUICK = """
[policies.gentle]
idle = "500ms"
notice = "2s"
never_used = "500ms"
keeps_max = 1000
"""


@pytest.fixture(scope="module")
def home(module_folders: Folders) -> Path:
    return module_folders.root


@pytest.fixture(scope="module")
def broker(home: Path) -> Iterator[RunningBroker]:
    with running_broker("1xH200", policy=QUICK) as made:
        yield made


@pytest.fixture(scope="module")
def shared_kernel(broker: RunningBroker, home: Path) -> Iterator[Kernel]:
    with running_kernel(broker, home) as made:
        yield made


@pytest.fixture(scope="module")
def shared_eager(broker: RunningBroker, home: Path) -> Iterator[Kernel]:
    with running_kernel(broker, home, first_use="auto") as made:
        yield made
