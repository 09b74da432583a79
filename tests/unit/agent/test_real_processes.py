"""The ways in which notebooks start processes, each with real ones: whose they are while the kernel lives and after its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jupyter_gpubroker.agent.attribution import Attribution
from jupyter_gpubroker.agent.holdings import Holder, HolderIndex
from jupyter_gpubroker.agent.pids import Trust
from jupyter_gpubroker.agent.processes import ProcessTable
from jupyter_gpubroker.agent.trees import Trees
from jupyter_gpubroker.core.events import ProcessOnSlot, ProcessOwner
from jupyter_gpubroker.devices.reader import ProcessReading

MARK = "mark-of-this-kernel"
# Says its pid and lives until the test closes the pipe that is everybody's standard input.
LEAF = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
LEAF_COMMAND = f'"{sys.executable}" -S -c "{LEAF}"'

WAYS = {
    "the kernel itself": LEAF,
    "subprocess": f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {LEAF!r}])",
    "fork": f"import os\nif os.fork(): os.wait()\nelse:\n    {LEAF}",
    "setsid": f"import os\nif os.fork(): os.wait()\nelse:\n    os.setsid()\n    {LEAF}",
    "double fork": f"import os, sys\nif os.fork(): sys.stdin.read()\nelse:\n    if os.fork(): os._exit(0)\n    {LEAF}",
    "daemon": (
        "import os, sys\nif os.fork(): sys.stdin.read()\nelse:\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
        f"    os.execv(sys.executable, [sys.executable, '-S', '-c', {LEAF!r}])"
    ),
    "shell with &": f"import os, sys; os.system('''exec 3<&0; {LEAF_COMMAND} <&3 &'''); sys.stdin.read()",
    "nohup in a shell": f"import os, sys; os.system('''exec 3<&0; nohup {LEAF_COMMAND} <&3 &'''); sys.stdin.read()",
    "worker by fork": (
        "import multiprocessing, os\nkept = os.dup(0)\n"
        "def work(): print(os.getpid(), flush=True); os.read(kept, 1)\n"
        "worker = multiprocessing.get_context('fork').Process(target=work)\nworker.start(); worker.join()"
    ),
}


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    for process in kernel.processes:
        process.communicate()


class Kernel:
    """A holder's first process, in a session of its own as Jupyter starts kernels, and one process that it starts."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, program: str) -> Holder:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", program],
            env={"PATH": os.environ["PATH"], "GPUBROKER_SESSION": MARK},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(process)
        assert process.stdout is not None
        self.worker = int(process.stdout.readline())
        found = ProcessTable().process(process.pid)
        assert found is not None
        return Holder(
            "kernel", ProcessOwner.SESSION, os.getuid(), found.pid, found.start_ticks, MARK
        )

    def kill(self) -> None:
        self.processes[0].kill()
        self.processes[0].wait()


def look(pid: int, *holders: Holder) -> ProcessOnSlot:
    (found,) = Attribution(ProcessTable()).on_slot(
        [ProcessReading(pid, "compute")], HolderIndex(holders), frozenset({"kernel"}), Trust.LIKELY
    )
    return found


@pytest.mark.parametrize("way", WAYS)
def test_it_is_the_kernels_while_that_lives(kernel, way):
    holder = kernel.start(WAYS[way])
    found = look(kernel.worker, holder)
    assert (found.owned_by, found.holder_id, found.uid) == (
        ProcessOwner.SESSION,
        "kernel",
        os.getuid(),
    )


@pytest.mark.parametrize("way", [way for way in WAYS if way != "the kernel itself"])
def test_it_is_the_kernels_after_that_was_killed_and_is_left_behind(kernel, way):
    holder = kernel.start(WAYS[way])
    kernel.kill()
    assert look(kernel.worker, holder).holder_id == "kernel"
    tree = Trees(ProcessTable()).scan([holder])[holder]
    assert not tree.has_root
    assert kernel.worker in {process.pid for process in tree.processes}


def test_a_process_that_hides_every_tie_is_foreign(kernel):
    """No descent, no group or session, no mark: then nobody may be held responsible, and the slot is not handed on."""
    program = WAYS["daemon"].replace("os.execv(sys.executable, ", "os.execve(sys.executable, ")
    holder = kernel.start(program.replace(f"{LEAF!r}])", f"{LEAF!r}], {{}})"))
    found = look(kernel.worker, holder)
    assert (found.owned_by, found.uid) == (ProcessOwner.FOREIGN, os.getuid())


def test_the_next_kernel_is_not_taken_for_the_one_before(kernel):
    before = kernel.start(WAYS["the kernel itself"])
    other = Holder("other", before.owned_by, before.uid, before.pid, before.start_ticks - 1, "x")
    assert look(kernel.worker, other).owned_by is ProcessOwner.FOREIGN


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="makes a pid namespace, as root"
)
def test_a_container_of_the_kernels_is_found_by_its_pid_inside(kernel):
    """gpu-monitoring-tools#63: a pid namespace below ours, whose process the driver calls by the number it has there."""
    leaf = f"import os, subprocess, sys; subprocess.run(['unshare', '--pid', '--fork', sys.executable, '-S', '-c', {LEAF!r}])"
    holder = kernel.start(leaf)
    assert kernel.worker == 1
    inside = [
        process.pid
        for process in Trees(ProcessTable()).scan([holder])[holder].processes
        if (status := ProcessTable().status(process.pid)) is not None and status.inner_pids == (1,)
    ]
    assert len(inside) == 1
    assert look(inside[0], holder).holder_id == "kernel"
