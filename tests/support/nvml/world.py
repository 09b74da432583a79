"""What the devices of the stub library are, as a text file that the library reads anew whenever it is replaced."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("stub.c")
VARIABLE = "GPUBROKER_TEST_NVML"

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED, FUNCTION_NOT_FOUND, LOST, UNKNOWN = (
    3, 4, 6, 9, 13, 15, 999,
)  # fmt: skip


def has_compiler() -> bool:
    return shutil.which("gcc") is not None


def build(folder: Path, source: Path = SOURCE, name: str = "libnvidia-ml.so.1") -> Path:
    """The library, compiled into `folder`."""
    library = folder / name
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, source],
        check=True,
    )
    return library


class NvmlWorld:
    """Lines of the file by what they are about; every change is written at once, atomically."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, str] = {}
        self._write()

    def gpu(self, uuid: str, **values: object) -> None:
        """A GPU, or what changed of it: the values given before stay."""
        self._device("gpu", uuid, values)

    def mig(self, uuid: str, **values: object) -> None:
        self._device("mig", uuid, values)

    def process(self, device: str, pid: int, **values: object) -> None:
        """A process on a slot; `memory` in MiB, left out if unknown, `busy` in percent, `graphics`."""
        self._put(f"process {device} {pid}", f"process {device}{_pairs({'pid': pid, **values})}")

    def fail(self, function: str, code: int, device: str = "*") -> None:
        """From now on the library's function answers this error; 0 ends that."""
        key = f"fail {function} {device}"
        if code:
            self._put(key, f"{key} {code}")
        else:
            self.remove(key)

    def hang(self, function: str, device: str = "*") -> None:
        self._put(f"hang {function} {device}", f"hang {function} {device}")

    def report(self, gpu: str, code: int, gi_id: int = -1) -> None:
        """The driver reports an error."""
        number = sum(key.startswith("xid ") for key in self._lines) + 1
        self._put(f"xid {number}", f"xid {number} {gpu} {code} {gi_id}")

    def ring(self, gpu: str, *values: int) -> None:
        """The samples that the driver's ring holds from now on, instead of `util` over time."""
        self._put(f"ring {gpu}", " ".join(["ring", gpu, *map(str, values)]))

    def quirk(self, name: str, value: int = 1) -> None:
        self._put(f"quirk {name}", f"quirk {name} {value}")

    def driver(self, version: str) -> None:
        self._put("driver", f"driver {version}")

    def remove(self, beginning: str) -> None:
        """Forget all lines about this, such as `mig MIG-1`."""
        self._lines = {
            key: line
            for key, line in self._lines.items()
            if key != beginning and not key.startswith(f"{beginning} ")
        }
        self._write()

    def _device(self, kind: str, uuid: str, values: dict[str, object]) -> None:
        key = f"{kind} {uuid}"
        old = dict(pair.split("=", 1) for pair in self._lines.get(key, "").split()[2:])
        self._put(key, key + _pairs({**old, **values}))

    def _put(self, key: str, line: str) -> None:
        self._lines[key] = line
        self._write()

    def _write(self) -> None:
        # Devices first: later lines name them.
        ordered = sorted(self._lines.values(), key=lambda line: not line.startswith(("gpu", "mig")))
        temporary = self.path.with_suffix(".new")
        temporary.write_text("".join(f"{line}\n" for line in ordered))
        temporary.replace(self.path)


def environment(world: NvmlWorld, library: Path) -> dict[str, str]:
    """For a process that is to find the stub in the place of NVIDIA's library."""
    return {**os.environ, VARIABLE: str(world.path), "LD_LIBRARY_PATH": str(library.parent)}


def _pairs(values: dict[str, object]) -> str:
    return "".join(_pair(name, value) for name, value in values.items())


def _pair(name: str, value: object) -> str:
    return f" {name}={str(value).replace(' ', '_')}"


def four_gpus(path: Path) -> NvmlWorld:
    """A whole GPU, one that may not be opened, one split by MIG with holes between its instances, and one that is lost."""
    world = NvmlWorld(path)
    world.gpu("GPU-0", used=501, util=1, gpm=1, engine=40.5, sm=0.01, dram=0)
    world.gpu("GPU-1")
    world.gpu("GPU-2", mig=1, gpm=1)
    world.gpu("GPU-3")
    for position, gi_id in ((1, 11), (4, 14)):
        world.mig(
            f"MIG-{position}",
            gpu="GPU-2",
            gi=gi_id,
            position=position,
            placement=position,
            profile="1g.18gb",
            memory=16384,
            used=501,
        )
    world.fail("nvmlDeviceGetHandleByIndex_v2", NO_PERMISSION, "GPU-1")
    world.fail("nvmlDeviceGetUUID", LOST, "GPU-3")
    for device in ("GPU-0", "MIG-1", "MIG-4"):
        world.process(device, 1000, memory=400, busy=50)
    return world
