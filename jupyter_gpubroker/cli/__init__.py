"""The command `gpubroker`. Nothing heavy is imported before the command that needs it is known."""

from __future__ import annotations


def main() -> None:
    """Entry point of the console script."""
    from .app import gpubroker

    gpubroker(prog_name="gpubroker")
