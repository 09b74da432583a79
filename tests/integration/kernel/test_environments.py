"""Kernels that are not ours to lend to, that have no broker, or that live in somebody else's environment."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.kernel.kernels import Kernel, running_kernel, until
from tests.support.broker import RunningBroker

SHOW = "import os; print(repr(os.environ.get('CUDA_VISIBLE_DEVICES')))"


@pytest.fixture(scope="module")
def kernel(broker: RunningBroker, home: Path) -> Iterator[Kernel]:
    """A kernel of a virtual environment without our package, with a user's own IPython configuration."""
    environment = home / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/*/site-packages"))
    # A folder named by a .pth file is importable, but the .pth files in it are not read: ours stays out.
    (packages / "jupyter.pth").write_text(sysconfig.get_path("purelib"))
    profile = Path(os.environ["IPYTHONDIR"], "profile_default")
    profile.mkdir(parents=True)
    (profile / "ipython_kernel_config.py").write_text(
        "c.InteractiveShellApp.extensions = ['autoreload']\n"
        "c.InteractiveShellApp.exec_lines = ['mine = 1']\n"
    )
    with running_kernel(broker, home, python=str(environment / "bin" / "python")) as made:
        yield made


def test_the_package_works_where_it_is_not_installed(kernel: Kernel) -> None:
    ran = kernel.run(
        "import importlib.util, sys\nprint(sys.prefix, importlib.util.find_spec('jupyter_gpubroker'))"
    )
    assert ran.text.split() == [str(Path(kernel.python).parents[1]), "None"]
    assert "is yours" in kernel.run("%gpu request").text
    assert "went back" in kernel.run("%gpu release").text


def test_the_users_ipython_configuration_stays_as_it_is(kernel: Kernel) -> None:
    ran = kernel.run(
        "print(mine, get_ipython().find_line_magic('autoreload') is not None, "
        "get_ipython().find_line_magic('gpu') is not None)"
    )
    assert ran.text.strip() == "1 True True"


def test_the_working_folder_is_not_put_on_the_path_by_us(kernel: Kernel) -> None:
    ran = kernel.run("import os; print(os.environ['PYTHONPATH'].split(os.pathsep))")
    assert ran.text.strip().endswith("jupyter_gpubroker/kernel']")


def test_what_the_kernel_starts_is_not_the_kernel(kernel: Kernel) -> None:
    kernel.run("%gpu request")
    lease = kernel.until_lease("active")
    child = "import gpubroker; print(gpubroker.request()); gpubroker.release()"
    ran = kernel.run(f"""import subprocess, sys
print(subprocess.run([sys.executable, "-c", {child!r}], capture_output=True, text=True))""")
    assert "returncode=0" in ran.text
    assert "None" in ran.text
    assert kernel.until_lease("active").id == lease.id
    kernel.run("%gpu release")


def test_a_forked_child_asks_for_nothing_and_hides_nothing(kernel: Kernel) -> None:
    kernel.run("%gpu request")
    lease = kernel.until_lease("active")
    forked = """
import os, gpubroker
reader, writer = os.pipe()
pid = os.fork()
if not pid:
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    import contextlib, io
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        gpubroker.release()
    os.write(writer, f"{os.environ['CUDA_VISIBLE_DEVICES']} {said.getvalue()}".encode())
    os._exit(0)
os.waitpid(pid, 0)
print(os.read(reader, 1000).decode())
"""
    ran = kernel.run(forked)
    assert ran.text.startswith(lease.visible_devices), ran
    assert "started by a kernel" in ran.text
    assert kernel.until_lease("active").id == lease.id
    kernel.run("%gpu release")


def test_a_broker_that_goes_away_leaves_the_notebook_alone(
    kernel: Kernel, broker: RunningBroker
) -> None:
    kernel.run("%gpu request")
    lease = kernel.until_lease("active")
    broker.kill()
    for cell in ("%gpu", "%gpu request", "%gpu why", "%gpu keep", "%gpu doctor"):
        ran = kernel.run(cell, reported=False)
        assert ran.status == "ok", (cell, ran.error)
        assert "Traceback" not in ran.text, cell
    assert kernel.run("1 + 1", reported=False).text == "2"
    broker.start()
    assert kernel.until_lease("active").id == lease.id
    until("the kernel's word", lambda: "Held" in kernel.run("%gpu").text)
    assert "went back" in kernel.run("%gpu release").text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"GPUBROKER": "off"}, "switched off"),
        ({"GPUBROKER_INHERITED": "1"}, "keeps the devices"),
        ({"GPUBROKER_URL": "unix:///nowhere/broker.sock"}, "does not answer"),
        ({"GPUBROKER_URL": "https://example.org"}, "must be unix"),
        ({"GPUBROKER_SESSION": ""}, "borrows no GPUs"),
    ],
)
def test_without_a_broker_there_is_one_plain_sentence(
    home: Path, change: dict[str, str], said: str
) -> None:
    """In a process without a kernel, which starts faster; what counts is the same."""
    script = """
import gpubroker.runtime
gpubroker.runtime.START_S = 0.2  # the patience with a broker that is being started
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.extension_manager.load_extension("gpubroker")
for cell in ("%gpu", "%gpu request", "%gpu release", "import gpubroker; assert gpubroker.request() is None",
             "with gpubroker.lease() as lease: print(lease)", "gpubroker.keep()",
             "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '0'", "from gpubroker import simulated"):
    result = shell.run_cell(cell)
    assert result.success, cell
"""
    environ = {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "IPYTHONDIR": str(home / "other"),
        "CUDA_VISIBLE_DEVICES": "",
        "GPUBROKER_SESSION": "0" * 32,
        "GPUBROKER_URL": "unix:///nowhere/broker.sock",
        "GPUBROKER_FIRST_USE": "auto",
        **change,
    }
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert said in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr
