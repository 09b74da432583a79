"""Fixtures of the crash tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.nursery import Nursery


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    started = Nursery()
    yield started
    started.close()
