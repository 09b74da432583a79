"""`python -m jupyter_gpubroker.runner.notebook FILE`: runs a notebook from top to bottom in place, as a batch job does.

What its cells print passes on to this process' own output as it comes, so that the job's log is live. The file is written
after each cell: whatever ends the job, what was done until then is in it. An error ends the run, as in a notebook.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

ERROR_IN_CELL = 1
KERNEL_DIED = 2
CANNOT_START = 127
# Colours that tracebacks have in notebooks.
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def main() -> int:
    """The exit status of the job: 0 when all cells ran."""
    parser = argparse.ArgumentParser(
        prog="python -m jupyter_gpubroker.runner.notebook", description=__doc__
    )
    parser.add_argument(
        "file", type=Path, help="the notebook; what its cells show is written into it"
    )
    path = parser.parse_args().file.absolute()
    try:
        with tempfile.TemporaryDirectory(prefix="gpubroker-") as sockets:
            _Run(path, _read(path), Path(sockets)).run()
    except CellExecutionError as error:
        print(_COLOURS.sub("", str(error)), file=sys.stderr)
        return ERROR_IN_CELL
    except DeadKernelError:
        print("The kernel ended before the notebook did.", file=sys.stderr)
        return KERNEL_DIED
    except (OSError, ValueError, LookupError) as error:
        print(f"{path.name} cannot be run ({type(error).__name__}: {error}).", file=sys.stderr)
        return CANNOT_START
    return 0


class _Run(NotebookClient):
    """One run of one notebook. Its kernel listens in the folder `sockets`, which is closed to others, and on no port."""

    def __init__(self, path: Path, notebook: Any, sockets: Path) -> None:
        kernel = AsyncKernelManager(
            kernel_name=notebook.metadata.get("kernelspec", {}).get("name", NATIVE_KERNEL_NAME),
            transport="ipc",
            connection_file=str(sockets / "kernel.json"),
        )
        super().__init__(
            notebook,
            km=kernel,
            resources={"metadata": {"path": str(path.parent)}},
            timeout=None,
            coalesce_streams=True,
            on_cell_start=self._tell,
            on_cell_executed=self._save,
        )
        self._path = path
        self._count = sum(cell.cell_type == "code" for cell in notebook.cells)

    def run(self) -> None:
        """All cells, or up to an error."""
        try:
            self.execute(cleanup_kc=True)
        finally:
            self._save()

    async def _async_cleanup_kernel(self) -> None:
        # Told to end by a signal, nbclient does it twice, and fails at the second.
        if self.km is not None:
            await super()._async_cleanup_kernel()

    def output(self, outs: Any, msg: Any, display_id: Any, cell_index: int) -> Any:
        """As a notebook takes it, and as a terminal would show it."""
        content = msg["content"]
        if msg["msg_type"] == "stream":
            stream = sys.stderr if content["name"] == "stderr" else sys.stdout
            stream.write(content["text"])
            stream.flush()
        elif text := content.get("data", {}).get("text/plain"):
            print(text, flush=True)
        return super().output(outs, msg, display_id, cell_index)

    def _tell(self, cell: Any, cell_index: int) -> None:
        if cell.cell_type == "code":
            number = sum(each.cell_type == "code" for each in self.nb.cells[: cell_index + 1])
            print(
                f"[{number}/{self._count}] {cell.source.strip().partition(chr(10))[0]}", flush=True
            )

    def _save(self, **_: Any) -> None:
        """Whole or not at all: it may be open in an editor, and the job may be ended at any moment."""
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            temporary.write_text(nbformat.writes(self.nb), encoding="utf-8")
            temporary.chmod(self._path.stat().st_mode)
            temporary.replace(self._path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _read(path: Path) -> Any:
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)


if __name__ == "__main__":
    sys.exit(main())
