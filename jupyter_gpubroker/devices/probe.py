"""The probe: the child process that reads the GPUs, `python -m jupyter_gpubroker.devices.probe`.

A sick GPU can block a driver call for good. It then blocks this process and nobody else; `probe_client` gives up on it.
Imports little, since the broker waits for the first inventory.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .choice import Choice, open_reader
from .jsonlines import serve


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m jupyter_gpubroker.devices.probe", description=__doc__
    )
    parser.add_argument(
        "--simulate", metavar="SPEC", help="simulated GPUs instead of NVIDIA's, such as 2xH200"
    )
    parser.add_argument(
        "--folder", metavar="PATH", type=Path, help="where the simulated GPUs' state lies"
    )
    parser.add_argument(
        "--sources", metavar="FILE", type=Path, help="further sources of what the devices do"
    )
    arguments = parser.parse_args()
    if (arguments.simulate is None) != (arguments.folder is None):
        parser.error("--simulate and --folder go together")
    reader = open_reader(Choice(arguments.simulate, arguments.folder, arguments.sources))
    try:
        serve(
            {
                "inventory": reader.inventory,
                "observe": reader.observe,
                "health": reader.health,
                "capabilities": reader.capabilities,
            }
        )
    finally:
        reader.close()


if __name__ == "__main__":
    main()
