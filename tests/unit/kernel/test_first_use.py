"""Imports of GPU libraries: who asks, when, and how often."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpubroker.first_use import FirstUse


class Asker:
    """A FirstUse and what it did."""

    def __init__(self, mode: str) -> None:
        self.asked: list[str] = []
        self.hinted: list[str] = []
        self.is_wanted = True
        self.first_use = FirstUse(
            mode, self.asked.append, self.hinted.append, lambda: self.is_wanted
        )
        self.first_use.in_cell = True


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Importable stand-ins that note whether somebody was asked before their code ran."""
    for name in ("jax", "cupy"):
        (tmp_path / f"{name}.py").write_text("STARTED = True\n")
    numba = tmp_path / "numba"
    (numba / "cuda").mkdir(parents=True)
    (numba / "__init__.py").write_text("")
    (numba / "cuda" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    names = ("jax", "cupy", "numba", "numba.cuda")
    before = {name: sys.modules.pop(name, None) for name in names}
    yield
    for name in names:
        sys.modules.pop(name, None)
        if (module := before[name]) is not None:
            sys.modules[name] = module


@pytest.fixture
def auto() -> Iterator[Asker]:
    made = Asker("auto")
    made.first_use.install()
    yield made
    made.first_use.uninstall()


def test_it_asks_before_the_librarys_code_runs(auto: Asker) -> None:
    states: list[bool] = []
    auto.first_use._asks = lambda name: states.append(hasattr(sys.modules[name], "STARTED"))
    importlib.import_module("jax")
    assert states == [False]
    assert hasattr(sys.modules["jax"], "STARTED")


def test_a_mere_look_asks_nothing_and_the_loader_stays_what_it_is(auto: Asker) -> None:
    spec = importlib.util.find_spec("jax")
    assert spec is not None
    assert type(spec.loader).__name__ == "SourceFileLoader"
    assert auto.asked == []
    module = importlib.import_module("jax")
    assert "exec_module" not in vars(module.__loader__)


def test_a_submodule_counts_and_its_package_does_not(auto: Asker) -> None:
    importlib.import_module("numba")
    assert auto.asked == []
    importlib.import_module("numba.cuda")
    assert auto.asked == ["numba.cuda"]


def test_nobody_is_asked_twice_until_a_gpu_went_back(auto: Asker) -> None:
    importlib.import_module("jax")
    importlib.import_module("cupy")
    assert auto.asked == ["jax"]
    auto.first_use.rearm()
    del sys.modules["cupy"]
    importlib.import_module("cupy")
    assert auto.asked == ["jax", "cupy"]


def test_outside_of_a_cell_nobody_is_asked(auto: Asker) -> None:
    auto.first_use.in_cell = False
    importlib.import_module("jax")
    assert auto.asked == []


def test_other_threads_ask_nobody(auto: Asker) -> None:
    thread = threading.Thread(target=importlib.import_module, args=("jax",))
    thread.start()
    thread.join()
    assert auto.asked == []
    assert "jax" in sys.modules


def test_who_holds_a_gpu_is_not_asked(auto: Asker) -> None:
    auto.is_wanted = False
    importlib.import_module("jax")
    assert auto.asked == []


def test_a_missing_library_fails_as_ever(auto: Asker) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tensorflow.nothing")
    assert auto.asked == []


def test_a_hint_is_given_once() -> None:
    asker = Asker("hint")
    asker.first_use.install()
    try:
        importlib.import_module("jax")
        importlib.import_module("cupy")
    finally:
        asker.first_use.uninstall()
    assert (asker.asked, asker.hinted) == ([], ["jax"])


def test_none_installs_nothing() -> None:
    asker = Asker("none")
    before = list(sys.meta_path)
    asker.first_use.install()
    assert sys.meta_path == before
    asker.first_use.uninstall()
