"""torch-memory-saver is preloaded only where the kernel's own Python is seen to start with it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpubroker.server import preload
from jupyter_gpubroker.server.preload import Preload, prepare

pytestmark = pytest.mark.asyncio

ARGV = (sys.executable, "-m", "ipykernel_launcher", "-f", "c.json")
STEM = "torch_memory_saver_hook_mode_preload"


def libm() -> Path:
    """A shared library this very Python runs with."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "/libm" in line:
            return Path(line.split()[-1])
    raise AssertionError("this Python runs without libm")


class Environment:
    """A kernel's site-packages with PyTorch, its CUDA runtime and the library, as far as they are looked at."""

    def __init__(self, root: Path) -> None:
        self.site = root / "site"
        self.state = root / "state"
        self.runtime = self.site / "nvidia" / "cuda_runtime" / "lib"
        self.library = self.site / f"{STEM}_cu12.abi3.so"
        for package in ("torch", "torch_memory_saver"):
            (self.site / package).mkdir(parents=True)
            raises = f"raise ImportError('{package} is not to be imported')"
            (self.site / package / "__init__.py").write_text(raises)
        self.cuda("12.8")
        self.runtime.mkdir(parents=True)
        (self.runtime / "libcudart.so.12").touch()
        shutil.copy(libm(), self.library)
        self.state.mkdir()
        (self.state / "park-verified.json").write_text(json.dumps({"verified": True}))

    def cuda(self, version: str | None) -> None:
        text = f"__version__ = '2.9'\ncuda: Optional[str] = {version!r}\nhip = None\n"
        (self.site / "torch" / "version.py").write_text(text)

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.site)}

    async def prepare(self, *, argv: tuple[str, ...] = ARGV, **environ: str) -> Preload:
        return await prepare(argv, {**self.environ, **environ}, self.state)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    yield Environment(tmp_path)
    preload._tried.clear()


async def test_the_build_for_the_kernels_cuda_is_preloaded(environment: Environment) -> None:
    assert await environment.prepare() == Preload(
        {
            "LD_PRELOAD": str(environment.library),
            "LD_LIBRARY_PATH": str(environment.runtime),
            "TMS_INIT_ENABLE": "1",
            "TMS_INIT_ENABLE_CPU_BACKUP": "1",
            "TMS_INIT_CPU_BACKUP_BACKEND": "mmap",
        }
    )


async def test_what_the_user_preloads_is_kept(environment: Environment) -> None:
    prepared = await environment.prepare(LD_PRELOAD=str(libm()), LD_LIBRARY_PATH="/mine")
    found = prepared.environment
    assert found["LD_PRELOAD"] == f"{environment.library}:{libm()}"
    assert found["LD_LIBRARY_PATH"] == f"/mine:{environment.runtime}"


async def test_a_preload_that_would_kill_every_process_is_left_out(
    environment: Environment,
) -> None:
    """As on a machine without the driver: the loader finds a dependency missing, and the process ends at once."""
    broken = environment.library.read_bytes().replace(b"libc.so.6\0", b"libc.so.9\0")
    environment.library.write_bytes(broken)
    assert await environment.prepare() == Preload({}, "park_preload_fails")


async def test_an_interpreter_is_tried_once_per_library(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await environment.prepare()
    [key] = preload._tried
    preload._tried[key] = False
    assert (await environment.prepare()).refusal == "park_preload_fails"
    os.utime(environment.library, (1, 1))
    assert (await environment.prepare()).refusal is None, "another library is another try"


async def test_parking_stays_off_until_seen_to_work_on_this_machine(
    environment: Environment,
) -> None:
    record = environment.state / "park-verified.json"
    for text in ('{"verified": false}', "{}", "[]", "rubbish"):
        record.write_text(text)
        assert await environment.prepare() == Preload({}, "unverified_hardware")
    record.unlink()
    assert await environment.prepare() == Preload({}, "unverified_hardware")


@pytest.mark.parametrize(
    ("cuda", "refusal"), [("11.8", "park_cuda_unsupported"), (None, "park_cuda_unsupported")]
)
async def test_other_versions_of_cuda_are_refused(
    environment: Environment, cuda: str | None, refusal: str
) -> None:
    environment.cuda(cuda)
    assert await environment.prepare() == Preload({}, refusal)


async def test_an_environment_without_the_library_is_left_as_it_is(
    environment: Environment,
) -> None:
    shutil.rmtree(environment.site / "torch_memory_saver")
    assert await environment.prepare() == Preload({}, "park_library_missing")


async def test_memory_that_torch_maps_by_itself_cannot_be_parked(environment: Environment) -> None:
    found = await environment.prepare(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    assert found == Preload({}, "park_expandable_segments")


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false"])
async def test_a_python_that_does_not_run_is_no_trouble(
    environment: Environment, python: str
) -> None:
    argv = (python, *ARGV[1:])
    assert await environment.prepare(argv=argv) == Preload({}, "park_library_missing")


async def test_other_kernels_are_not_asked(environment: Environment) -> None:
    assert await environment.prepare(argv=("R", "--slave")) == Preload({}, "not_ipykernel")
