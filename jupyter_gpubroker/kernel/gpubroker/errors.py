"""What can go wrong on the way to a GPU, as exceptions whose message is one sentence for people.

A notebook shows them without a traceback: where in our code it happened helps nobody who reads a notebook. Every message says
what happened, why, and what to do.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional


class Plain:
    """IPython prints this instead of a traceback."""

    def _render_traceback_(self) -> List[str]:
        from .telling import wrapped

        return wrapped(str(self)).split("\n")


class GPUBrokerError(Plain, Exception):
    """Any error of this package."""


class Unavailable(GPUBrokerError):
    """There is nobody to ask: no broker answers, or this process is none that the broker lends GPUs to."""


class Refused(GPUBrokerError):
    """What was asked for cannot be done, and nothing was changed. `code` and `values` say why, for programs."""

    def __init__(
        self,
        sentence: str,
        code: str = "refused",
        values: Optional[Dict[str, Any]] = None,
        status: int = 422,
    ) -> None:
        super().__init__(sentence)
        self.code = code
        self.values = values or {}
        self.status = status


class Interrupted(Plain, KeyboardInterrupt):
    """The user stopped a wait; the message says what that changed."""


class GPUAway(RuntimeError):
    """Code that is kept off the GPU would have used it. Shown with its traceback: it is the user's code that has to change."""


Reason = Dict[str, Any]


def reason(code: str, **values: Any) -> Reason:
    """Why something is so, as the broker takes it; it renders the sentence."""
    return {"code": code, "values": values}
