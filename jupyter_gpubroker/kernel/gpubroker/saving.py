"""Saves what can be saved before a restart that gives the GPU back, and brings it back afterwards (`restarted`).

Tensors go to the host first. What cannot be saved is found out before anybody consents. The folder belongs to the user alone,
and nothing is loaded from one that others could write: unpickling runs code.
"""

from __future__ import annotations

import collections
import contextlib
import copyreg
import importlib
import io
import json
import os
import pickle
import shutil
import stat
import sys
import time
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from .errors import Refused
from .sentences import names, say

DATA, MANIFEST = "variables.pickle", "manifest.json"
KEPT_S = 30 * 24 * 3600

_PROTOCOL = 4
_OF_IPYTHON = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})


class Report(NamedTuple):
    """Names that can be saved, and for each of the others why it cannot."""

    saved: List[str]
    lost: Dict[str, str]


class Saver:
    """The variables of one kernel. `folder` is where they are put; a restart of the same kernel finds it again."""

    def __init__(self, folder: str, shell: Any) -> None:
        self.folder = folder
        self._shell = shell

    def check(self) -> Report:
        """What a restart would keep and lose; nothing is written."""
        variables = self._variables()
        lost = _unsavable(variables)
        return Report([name for name in variables if name not in lost], lost)

    def save(self, cause: str) -> Report:
        """Write everything that can be. The manifest comes last and names the `cause`: whoever sees it finds all there."""
        _forget_old(os.path.dirname(self.folder))
        _private_folder(self.folder)
        variables = self._variables()
        lost: Dict[str, str] = {}
        path = os.path.join(self.folder, DATA)
        try:
            _write(path, lambda file: _dump(variables, file))
        except Exception:  # noqa: BLE001 - objects raise what they like when pickled
            lost = _unsavable(variables)
            variables = {name: value for name, value in variables.items() if name not in lost}
            _write(path, lambda file: _dump(variables, file))
        report = Report(list(variables), lost)
        manifest = {
            "cause": cause,
            "saved": report.saved,
            "lost": report.lost,
            "imports": _imports(self._shell.user_ns),
            "cell": restore_cell(report),
        }
        text = json.dumps(manifest).encode()
        _write(os.path.join(self.folder, MANIFEST), lambda file: file.write(text))
        return report

    def manifest(self) -> Optional[Dict[str, Any]]:
        """What was saved before this kernel was restarted, None if nothing was."""
        path = os.path.join(self.folder, MANIFEST)
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def load(self) -> Report:
        """Put the saved variables back. What exists in the namespace by now is left alone."""
        manifest = self.manifest()
        if manifest is None:
            raise Refused(say("nothing_to_restore"), "nothing_to_restore")
        _check_private(self.folder)
        namespace = self._shell.user_ns
        for name, module in manifest["imports"].items():
            if name not in namespace:
                namespace[name] = importlib.import_module(module)
        try:
            with open(os.path.join(self.folder, DATA), "rb") as file:
                variables = pickle.load(file)  # noqa: S301 - a folder of one's own, checked above
        except Exception as error:
            text = f"{type(error).__name__}: {error}"[:200]
            raise Refused(
                say("restore_failed", error=text, folder=self.folder), "restore_failed"
            ) from error
        for name, value in variables.items():
            namespace.setdefault(name, value)
        shutil.rmtree(self.folder, ignore_errors=True)
        return Report(list(variables), manifest["lost"])

    def _variables(self) -> Dict[str, Any]:
        """The user's variables, without modules and what IPython puts there."""
        hidden = getattr(self._shell, "user_ns_hidden", {})
        return {
            name: value
            for name, value in list(self._shell.user_ns.items())
            if not name.startswith("_")
            and name not in _OF_IPYTHON
            and not isinstance(value, types.ModuleType)
            and (name not in hidden or hidden[name] is not value)
        }


def restore_cell(report: Report) -> str:
    """The code of a cell that brings back what was saved."""
    lines = ["# " + say("restore_cell_head", names=names(report.saved))]
    lines += [
        "# " + say("restore_cell_lost", name=name, why=why) for name, why in report.lost.items()
    ]
    return "\n".join([*(" ".join(line.split()) for line in lines), "%gpu restore"])


def host_tensor(tensor: Any, requires_grad: bool, is_parameter: bool) -> Any:
    """What a saved GPU tensor becomes when it is loaded: the same on the host."""
    if is_parameter:
        return sys.modules["torch"].nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _reduce_tensor(tensor: Any) -> Any:
    if not tensor.is_cuda:
        return tensor.__reduce_ex__(_PROTOCOL)
    is_parameter = isinstance(tensor, sys.modules["torch"].nn.Parameter)
    return host_tensor, (tensor.detach().cpu(), tensor.requires_grad, is_parameter)


class _PlainPickler(pickle.Pickler):
    """Refuses what plain pickle would save as a name that a new kernel does not know."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (type, types.FunctionType)) and obj.__module__ == "__main__":
            raise pickle.PicklingError(say("defined_here", name=obj.__name__))
        return NotImplemented


def _dump(value: Any, file: Any) -> None:
    """Pickle, by the means that are there: functions and classes of the notebook need cloudpickle or dill."""
    base: Any = _PlainPickler
    table: Any = copyreg.dispatch_table
    for module_name, class_name in (("cloudpickle", "CloudPickler"), ("dill", "Pickler")):
        try:
            base = getattr(importlib.import_module(module_name), class_name)
        except (ImportError, AttributeError):
            continue
        table = getattr(base, "dispatch_table", table)
        break
    torch = sys.modules.get("torch")
    tensors: Dict[Any, Any] = (
        {} if torch is None else dict.fromkeys((torch.Tensor, torch.nn.Parameter), _reduce_tensor)
    )
    made = type("Pickler", (base,), {"dispatch_table": collections.ChainMap(tensors, table)})
    made(file, protocol=_PROTOCOL).dump(value)


def _unsavable(variables: Dict[str, Any]) -> Dict[str, str]:
    """Which would not survive, and why: each is pickled on its own, to nowhere."""
    found = {}
    for name, value in variables.items():
        try:
            _dump(value, _Nowhere())
        except Exception as error:  # noqa: BLE001 - the same
            found[name] = f"{type(value).__name__}: {error}"[:200]
    return found


class _Nowhere(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


def _imports(namespace: Dict[str, Any]) -> Dict[str, str]:
    return {
        name: value.__name__
        for name, value in list(namespace.items())
        if isinstance(value, types.ModuleType)
        and not name.startswith("_")
        and value.__name__ in sys.modules
        and value.__name__ != "__main__"
    }


def _write(path: str, writes: Callable[[Any], Any]) -> None:
    """A whole file or none."""
    temporary = path + ".new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file:
        writes(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _forget_old(parent: str) -> None:
    """What nobody has asked for in a month."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(parent):
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > KEPT_S:
                shutil.rmtree(entry.path, ignore_errors=True)


def _private_folder(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _check_private(folder)


def _check_private(folder: str) -> None:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Refused(say("folder_not_private", folder=folder), "folder_not_private")


def kernel_key(shell: Any) -> str:
    """A name of this kernel that a restart keeps; empty where there is none."""
    application = getattr(getattr(shell, "kernel", None), "parent", None)
    name = os.path.basename(str(getattr(application, "connection_file", "") or ""))
    return os.path.splitext(name)[0]
