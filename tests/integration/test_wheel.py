"""What an installation gets: the package, the kernel's package under its short name, and Jupyter's configuration."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = "jupyter_gpubroker/kernel/gpubroker/"
CONFIGURATION = "data/etc/jupyter/jupyter_server_config.d/jupyter_gpubroker.json"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution of this tree and the wheel made from that, as an index would offer them."""
    folder = tmp_path_factory.mktemp("built")
    build("sdist", ROOT, folder)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    build("wheel", next(path for path in folder.iterdir() if path.is_dir()), folder)
    return folder


def build(target: str, source: Path, folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        target,
        "--directory",
        str(folder),
    ]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(built.glob("*.whl")))


def test_the_wheel_has_every_module_of_the_package(wheel: zipfile.ZipFile) -> None:
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "jupyter_gpubroker").rglob("*.py")}
    assert modules <= set(wheel.namelist())


def test_the_kernels_package_is_shipped_as_top_level_gpubroker_too(wheel: zipfile.ZipFile) -> None:
    inner = {
        name.removeprefix(KERNEL): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith(KERNEL)
    }
    outer = {
        name.removeprefix("gpubroker/"): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith("gpubroker/")
    }
    assert inner
    assert outer == inner


def test_the_wheel_enables_the_server_extension(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(CONFIGURATION))
    extensions = json.loads(wheel.read(name))["ServerApp"]["jpserver_extensions"]
    assert extensions == {"jupyter_gpubroker": True}


def test_nothing_else_lands_at_the_top_of_site_packages(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.startswith("jupyter_gpubroker-")} == {
        "gpubroker",
        "jupyter_gpubroker",
    }
