"""What survives a restart, and what is told not to."""

from __future__ import annotations

import json
import math
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpubroker import saving
from gpubroker.errors import Refused
from gpubroker.saving import DATA, KEPT_S, MANIFEST, Saver


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "restore" / "kernel-1"


def saver(folder: Path, **namespace: Any) -> Saver:
    return Saver(str(folder), SimpleNamespace(user_ns=namespace, user_ns_hidden={"hidden": 1}))


def test_variables_come_back_with_what_they_share(folder: Path) -> None:
    numbers = [1, 2]
    namespace = {
        "numbers": numbers,
        "same": numbers,
        "math": math,
        "_private": 1,
        "In": [],
        "hidden": 1,
    }
    report = saver(folder, **namespace).save("cause")
    assert (report.saved, report.lost) == (["numbers", "same"], {})
    new: dict[str, Any] = {"same": "already there"}
    restored = Saver(str(folder), SimpleNamespace(user_ns=new))
    assert restored.load().saved == ["numbers", "same"]
    assert new == {"numbers": [1, 2], "same": "already there", "math": math}
    assert not folder.exists()
    with pytest.raises(Refused, match="Nothing was saved"):
        restored.load()


def test_what_cannot_be_saved_is_named_and_loses_nobody_else(folder: Path) -> None:
    made = saver(folder, lock=threading.Lock(), x=1, file=sys.stdout)
    assert made.check().saved == ["x"]
    assert not folder.exists()
    report = made.save("cause")
    assert report.saved == ["x"]
    assert report.lost.keys() == {"lock", "file"}
    assert report.lost["lock"].startswith("lock: ")
    manifest = made.manifest()
    assert manifest is not None
    assert manifest["cell"].splitlines()[-1] == "%gpu restore"
    assert "lock" in manifest["cell"]


def test_the_manifest_comes_last(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    replace = os.replace

    def noted(old: str, new: str) -> None:
        order.append(Path(new).name)
        replace(old, new)

    monkeypatch.setattr(os, "replace", noted)
    saver(folder, x=1).save("cause")
    assert order == [DATA, MANIFEST]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / DATA).stat().st_mode) == 0o600


def test_nothing_is_loaded_from_a_folder_that_others_may_write_to(folder: Path) -> None:
    made = saver(folder, x=1)
    made.save("cause")
    folder.chmod(0o777)
    with pytest.raises(Refused, match="open to others"):
        made.load()
    with pytest.raises(Refused, match="open to others"):
        made.save("cause")
    folder.chmod(0o700)
    other = folder.with_name("link")
    other.symlink_to(folder)
    with pytest.raises(Refused, match="open to others"):
        Saver(str(other), SimpleNamespace(user_ns={})).load()


def test_a_file_that_cannot_be_read_is_a_sentence_and_stays(folder: Path) -> None:
    made = saver(folder, x=1)
    made.save("cause")
    (folder / DATA).write_bytes(b"no pickle")
    with pytest.raises(Refused, match="cannot be read"):
        made.load()
    assert (folder / DATA).exists()
    (folder / MANIFEST).write_text("no JSON")
    assert made.manifest() is None


def test_what_nobody_asked_for_in_a_month_goes(folder: Path) -> None:
    old, new = folder.with_name("old"), folder.with_name("new")
    for other in (old, new):
        other.mkdir(parents=True)
    os.utime(old, (time.time() - KEPT_S - 60,) * 2)
    saver(folder, x=1).save("cause")
    assert (old.exists(), new.exists()) == (False, True)


def test_plain_pickle_refuses_what_a_new_kernel_would_not_know(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cloudpickle", "dill"):
        monkeypatch.setitem(sys.modules, name, None)

    def function() -> None:
        """Defined in the notebook."""

    function.__module__ = function.__qualname__ = "__main__"
    report = saver(folder, function=function, nested=[function], x=1).save("cause")
    assert report.saved == ["x"]
    assert "cloudpickle" in report.lost["function"]


def test_with_cloudpickle_functions_of_the_notebook_come_back(folder: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = f"""
import json, sys
from types import SimpleNamespace
from gpubroker.saving import Saver
def twice(x):
    return 2 * x
shell = SimpleNamespace(user_ns={{"twice": twice}} if sys.argv[1] == "save" else {{}})
saver = Saver({str(folder)!r}, shell)
if sys.argv[1] == "save":
    saver.save("cause")
else:
    del twice
    saver.load()
    print(shell.user_ns["twice"](21))
"""
    path = str(Path(saving.__file__).parents[1])
    for act, printed in (("save", ""), ("load", "42\n")):
        ran = subprocess.run(
            [sys.executable, "-c", script, act],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout == printed


@pytest.mark.torch
def test_tensors_are_saved_on_the_host(folder: Path) -> None:
    import torch

    class OnDevice(torch.Tensor):
        is_cuda = True

        def detach(self) -> torch.Tensor:
            return torch.ones(2)

    made = OnDevice(torch.zeros(2))
    function, arguments = saving._reduce_tensor(made)
    back = function(*arguments)
    assert back.tolist() == [1.0, 1.0]
    assert not back.requires_grad
    parameter = torch.nn.Parameter(torch.zeros(2))
    saver(folder, parameter=parameter, tensor=torch.arange(3)).save("cause")
    new: dict[str, Any] = {}
    Saver(str(folder), SimpleNamespace(user_ns=new)).load()
    assert new["tensor"].tolist() == [0, 1, 2]
    assert isinstance(new["parameter"], torch.nn.Parameter)
    assert new["parameter"].requires_grad


def test_the_name_of_a_kernel_is_that_of_its_connection_file() -> None:
    parent = SimpleNamespace(connection_file="/run/kernel-7.json")
    assert saving.kernel_key(SimpleNamespace(kernel=SimpleNamespace(parent=parent))) == "kernel-7"
    assert saving.kernel_key(SimpleNamespace()) == ""
    assert json.dumps(saving.kernel_key(None)) == '""'
