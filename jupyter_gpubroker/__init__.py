"""Lends GPUs and MIG slices to notebooks and batch jobs.

This module holds the version and tells Jupyter where the server extension is. It must import nothing
else: kernels, the broker and the command line all pay for what is imported here. Read on in
`docs/architecture.md`.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Name the server extension to Jupyter; imported only when a Jupyter server asks."""
    from jupyter_gpubroker.server.extension import GPUBrokerExtension

    return [{"module": "jupyter_gpubroker.server.extension", "app": GPUBrokerExtension}]
