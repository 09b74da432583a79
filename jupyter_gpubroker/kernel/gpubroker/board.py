"""One output that is updated in place: a place in line, a countdown.

In a notebook it is a display with an id, which any thread may update, its first line in bold; elsewhere the text is printed
when it changes in substance. All text is escaped; `code` is set as such.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
from typing import Any, Optional

from .telling import tell

_STYLE = (
    "border-left:3px solid var(--jp-warn-color1,#f57c00);padding:2px 8px;margin:2px 0;"
    "font-family:var(--jp-ui-font-family,sans-serif);font-size:var(--jp-ui-font-size1,13px)"
)
_CODE = re.compile("`([^`]*)`")


class Board:
    """`is_quiet` boards show nothing where there is no notebook to show it in."""

    def __init__(self, is_quiet: bool = False) -> None:
        self._id = "gpubroker-" + os.urandom(8).hex()
        self._is_quiet = is_quiet
        self._is_shown = False
        self._printed: Optional[str] = None

    def update(self, text: str) -> None:
        """Replace what is shown, if anything is."""
        if self._is_shown:
            self.show(text)

    def show(self, text: str, substance: Optional[str] = None) -> bool:
        """Replace what is shown. `substance` is the text without what ticks. False when there is no place to show it."""
        if _in_notebook():
            _publish(text, self._id, update=self._is_shown)
            self._is_shown = True
            return True
        if not self._is_quiet and self._printed != (substance or text):
            self._printed = substance or text
            tell(text)
        return not self._is_quiet


def shell() -> Any:
    """The IPython shell of this process, or None."""
    import sys

    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _in_notebook() -> bool:
    return getattr(shell(), "kernel", None) is not None


def _publish(text: str, display_id: str, update: bool) -> None:
    from IPython.display import display

    data = {
        "text/plain": text,
        "text/html": f'<div style="{_STYLE}">{_markup(text)}</div>',
    }
    # A front end that is gone must not end the thread that counts down.
    with contextlib.suppress(OSError):
        display(data, raw=True, display_id=display_id, update=update)


def _markup(text: str) -> str:
    headline, *lines = _CODE.sub(r"<code>\1</code>", html.escape(text)).split("\n")
    return "<br>".join([f"<b>{headline}</b>" if lines else headline, *lines])
