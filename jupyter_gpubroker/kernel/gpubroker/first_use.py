"""The first use of a GPU library in a kernel without a GPU: a slot is asked for before the import runs.

Only in the loader's `exec_module`, never in `find_spec`, which others call just to look; only in a cell of the main thread,
where a person sees the wait and can interrupt it; and once. After an interrupt or a refusal the import runs without a GPU and
no other asks again; where nobody could be asked, the next one does. The library's loader stays the one it would have had.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any, Callable, Iterator, Optional, Sequence

from .cuda_state import LIBRARIES

MODES = ("auto", "hint", "none")


class FirstUse:
    """`asks(library)` gets a GPU or says why not; it must not raise. `wanted` tells whether there is reason to ask at all."""

    def __init__(
        self,
        mode: str,
        asks: Callable[[str], None],
        hints: Callable[[str], None],
        wanted: Callable[[], bool],
    ) -> None:
        self.mode = mode if mode in MODES else "hint"
        self.in_cell = False
        self._asks = asks
        self._hints = hints
        self._wanted = wanted
        self._pid = os.getpid()
        self._is_done = False
        self._finder = _Finder(self.library_starts)

    def install(self) -> None:
        if self.mode != "none":
            sys.meta_path.insert(0, self._finder)

    def uninstall(self) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    @property
    def asks_anew(self) -> bool:
        """Would an import of a GPU library in a running cell ask for a GPU, if there were none?"""
        return self.mode == "auto"

    def done(self) -> None:
        """The user was asked, or said no: never again."""
        self._is_done = True

    def rearm(self) -> None:
        """A GPU went back without its user's doing: the next first use asks again."""
        self._is_done = False

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Imports of ours, which are nobody's first use."""
        before, self._is_done = self._is_done, True
        try:
            yield
        finally:
            self._is_done = before

    def library_starts(self, library: str) -> None:
        """Called right before a library's code runs for the first time."""
        in_main = threading.current_thread() is threading.main_thread()
        if self._is_done or not self.in_cell or not in_main or os.getpid() != self._pid:
            return
        if not self._wanted():
            return
        self._is_done = True
        if self.mode == "auto":
            self._asks(library)
        else:
            self._hints(library)


class _Finder:
    """Finds nothing itself: what the others find gets an `exec_module` that says first that it starts."""

    def __init__(self, starts: Callable[[str], None]) -> None:
        self._starts = starts

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        if name not in LIBRARIES:
            return None
        spec = self._found_by_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _announce(spec.loader, name, self._starts)
        return spec

    def _found_by_others(self, name: str, path: Any, target: Any) -> Any:
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None


def _announce(loader: Any, name: str, starts: Callable[[str], None]) -> None:
    """Shadow the loader's method for one call; its class, and everything else that others look at, stays."""
    original = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        starts(name)
        original(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        # A loader without attributes of its own: the import runs unasked.
        return
