"""Borrow a GPU for this notebook: `import gpubroker`, or `%gpu` in a cell.

Standard library only, so that it works in the kernel of any environment. In IPython, importing it makes `%gpu` known;
elsewhere it does nothing but define names. Without a broker all of it is harmless and says so. `api` has what is called here,
`extension` what IPython loads.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, List

from .callbacks import on_park, on_unpark
from .errors import GPUBrokerError, Refused, Unavailable

if TYPE_CHECKING:
    from . import simulated
    from .api import (
        Lease,
        arequest,
        consent_restart,
        doctor,
        help,  # noqa: A004
        keep,
        lease,
        park,
        policy,
        queue,
        release,
        request,
        restart,
        restore,
        status,
        unpark,
        why,
    )

__all__ = [
    "GPUBrokerError",
    "Lease",
    "Refused",
    "Unavailable",
    "arequest",
    "consent_restart",
    "doctor",
    "help",
    "keep",
    "lease",
    "on_park",
    "on_unpark",
    "park",
    "policy",
    "queue",
    "release",
    "request",
    "restart",
    "restore",
    "simulated",
    "status",
    "unpark",
    "why",
]


def __getattr__(name: str) -> Any:
    """Load the rest at its first use."""
    if name == "simulated":
        return importlib.import_module(".simulated", __name__)
    if name in __all__:
        return getattr(importlib.import_module(".api", __name__), name)
    raise AttributeError(f"module 'gpubroker' has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext gpubroker`, or `--ext=gpubroker` at the start of a kernel."""
    importlib.import_module(".extension", __name__).load(shell)


def unload_ipython_extension(shell: Any) -> None:
    importlib.import_module(".extension", __name__).unload(shell)


def _make_the_magic_known() -> None:
    """A notebook may be run by what knows nothing of us (`jupyter execute`, another server): it is to run there as well."""
    ipython = sys.modules.get("IPython")
    get_ipython = getattr(ipython, "get_ipython", None)
    shell = None if get_ipython is None else get_ipython()
    if shell is not None:
        load_ipython_extension(shell)


_make_the_magic_known()
