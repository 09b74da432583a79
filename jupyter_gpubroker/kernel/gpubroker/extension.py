"""The IPython extension: `%gpu` in every kernel, and everything that listens and waits in kernels that borrow GPUs.

The provisioner loads it with `--ext=gpubroker`, which adds to the user's own configuration and changes nothing in it; elsewhere
`import gpubroker` does. It is on the way of every kernel's start, so what is not needed there is imported when it is used.
"""

from __future__ import annotations

import os
from typing import Any

from . import cells, debugger_prompt, wakeup
from .environment import NAME, NOTHING
from .errors import Unavailable
from .session import of_environment

LEASE = "GPUBROKER_LEASE"


def gpu(line: str) -> None:
    """Lend me a GPU: `%gpu help` says what there is."""
    from . import magic

    magic.gpu(line)


def load(shell: Any) -> None:
    """Register the magic; start to listen where a broker lends to this process. Loading twice changes nothing."""
    shell.register_magic_function(gpu, "line", "gpu")
    debugger_prompt.install(gpu)
    cells.install(shell)
    wakeup.install(getattr(shell, "kernel", None))
    try:
        session = of_environment(os.environ)
    except Unavailable:
        # `current` says why to whoever asks.
        return
    from . import runtime

    if runtime.is_running():
        return
    lease_id = os.environ.pop(LEASE, None)
    enforces = lease_id is not None or os.environ.get(NAME) == NOTHING
    made = runtime.Runtime(session, shell, os.environ.get("GPUBROKER_FIRST_USE", "hint"), enforces)
    made.start(lease_id)
    runtime.set_current(made)


def unload(shell: Any) -> None:
    """Leave the kernel as it was; the lease stays until the process ends."""
    from . import runtime

    runtime.stop()
    cells.uninstall(shell)
    debugger_prompt.uninstall()
    shell.magics_manager.magics["line"].pop("gpu", None)
