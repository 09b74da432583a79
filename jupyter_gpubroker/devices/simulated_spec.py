"""The grammar and the catalogue of simulated GPUs: `2xH200`, `1xA100:3g.40gb+4g.40gb`, `auto:2xH200`.

Placements are those of the real products and memory sizes are close to what the vendor's tools print, so that what fits
here fits there. Sources: `nvidia-smi mig -lgip` as quoted in NVIDIA/mig-parted#120, the tables of NVIDIA/go-nvml, and the
MIG user guide (supported profiles).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GRAMMAR = (
    "Write COUNTxMODEL, with MIG profiles after a colon and several kinds apart by commas, "
    "for example 2xH200 or 1xA100:3g.40gb+4g.40gb,1xL4."
)
GPUS_MAX = 64


class SpecError(ValueError):
    """The text does not describe GPUs that could exist; the message says why and how to write it."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A MIG profile: compute slices, memory, and the memory slices (`starts`, `size`) it may lie on."""

    slices: int
    memory_mib: int
    size: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """`has_engines`: its engines have counters of their own (GPM), also for MIG instances."""

    name: str
    memory_mib: int
    slices_max: int = 0
    profiles: Mapping[str, Profile] | None = None
    has_engines: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """One GPU of a spec. `profiles` empty means that MIG is off."""

    model: Model
    profiles: tuple[str, ...] = ()


def _seven_slices(sizes_gb: Sequence[int], memory_mib: Sequence[int]) -> dict[str, Profile]:
    """The profiles of a data-centre GPU with seven compute and eight memory slices."""
    one, two, half, whole = sizes_gb
    one_mib, two_mib, half_mib, whole_mib = memory_mib
    return {
        f"1g.{one}gb": Profile(1, one_mib, 1, (0, 1, 2, 3, 4, 5, 6)),
        f"1g.{two}gb": Profile(1, two_mib, 2, (0, 2, 4, 6)),
        f"2g.{two}gb": Profile(2, two_mib, 2, (0, 2, 4)),
        f"3g.{half}gb": Profile(3, half_mib, 4, (0, 4)),
        f"4g.{half}gb": Profile(4, half_mib, 4, (0,)),
        f"7g.{whole}gb": Profile(7, whole_mib, 8, (0,)),
    }


_A30_PROFILES = {
    "1g.6gb": Profile(1, 5952, 1, (0, 1, 2, 3)),
    "2g.12gb": Profile(2, 11968, 2, (0, 2)),
    "4g.24gb": Profile(4, 24128, 4, (0,)),
}
_A100_40_PROFILES = _seven_slices((5, 10, 20, 40), (4864, 9856, 19968, 40192))
_A100_80_PROFILES = _seven_slices((10, 20, 40, 80), (9856, 19968, 40192, 80384))
_H100_PROFILES = _seven_slices((10, 20, 40, 80), (9984, 20096, 40448, 80896))
_H200_PROFILES = _seven_slices((18, 35, 71, 141), (16384, 33024, 71168, 143104))

MODELS: Mapping[str, Model] = {
    "H200": Model("NVIDIA H200", 143771, 7, _H200_PROFILES, has_engines=True),
    "H100": Model("NVIDIA H100 80GB HBM3", 81559, 7, _H100_PROFILES, has_engines=True),
    "A100": Model("NVIDIA A100-SXM4-80GB", 81920, 7, _A100_80_PROFILES),
    "A100-40GB": Model("NVIDIA A100-SXM4-40GB", 40960, 7, _A100_40_PROFILES),
    "A30": Model("NVIDIA A30", 24576, 4, _A30_PROFILES),
    "L40S": Model("NVIDIA L40S", 46068),
    "L4": Model("NVIDIA L4", 23034),
    "A10": Model("NVIDIA A10", 23028),
    "T4": Model("Tesla T4", 15360),
    "V100": Model("Tesla V100-SXM2-32GB", 32768),
}

_ITEM = re.compile(r"(?P<count>[0-9]{1,4})\s*x\s*(?P<model>[A-Za-z0-9-]+)(?::(?P<profiles>.*))?")


def parse_spec(text: str) -> tuple[SimulatedGpu, ...]:
    """The GPUs that `text` describes, in order. Raises `SpecError` with a sentence for people."""
    gpus: list[SimulatedGpu] = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item.strip())
        if match is None:
            raise SpecError(
                f"'{item.strip()[:60]}' is not a description of simulated GPUs. {GRAMMAR}"
            )
        model = _model(match["model"])
        profiles = (
            () if match["profiles"] is None else _profiles(match["model"], model, match["profiles"])
        )
        gpus.extend([SimulatedGpu(model, profiles)] * int(match["count"]))
    if not 1 <= len(gpus) <= GPUS_MAX:
        raise SpecError(
            f"'{text[:60]}' describes {len(gpus)} GPUs; between 1 and {GPUS_MAX} can be simulated. {GRAMMAR}"
        )
    return tuple(gpus)


def place(model: Model, profiles: Sequence[str]) -> tuple[int, ...] | None:
    """The first memory slice of each profile, or None where they do not fit together on one GPU."""
    known = model.profiles or {}
    if sum(known[name].slices for name in profiles) > model.slices_max:
        return None
    # Wide profiles have the fewest places, so they choose first; the answer keeps the order asked for.
    order = sorted(range(len(profiles)), key=lambda position: -known[profiles[position]].size)
    starts = _place([known[profiles[position]] for position in order], frozenset())
    if starts is None:
        return None
    by_position = dict(zip(order, starts, strict=True))
    return tuple(by_position[position] for position in range(len(profiles)))


def _place(profiles: Sequence[Profile], taken: frozenset[int]) -> tuple[int, ...] | None:
    if not profiles:
        return ()
    for start in profiles[0].starts:
        wanted = frozenset(range(start, start + profiles[0].size))
        if wanted & taken:
            continue
        rest = _place(profiles[1:], taken | wanted)
        if rest is not None:
            return (start, *rest)
    return None


def _model(name: str) -> Model:
    for known, model in MODELS.items():
        if known.lower() == name.lower():
            return model
    raise SpecError(
        f"'{name}' is not a GPU that can be simulated; there are {', '.join(MODELS)}. {GRAMMAR}"
    )


def _profiles(name: str, model: Model, text: str) -> tuple[str, ...]:
    if model.profiles is None:
        raise SpecError(f"A {name} has no MIG. Leave out ':{text[:60]}'.")
    profiles = tuple(part.strip().lower() for part in text.split("+"))
    for profile in profiles:
        if profile not in model.profiles:
            raise SpecError(
                f"'{profile[:30]}' is not a MIG profile of {name}; there are {', '.join(model.profiles)}. {GRAMMAR}"
            )
    if place(model, profiles) is None:
        raise SpecError(
            f"{' + '.join(profiles)} do not fit together on one {name}, "
            f"which has {model.slices_max} slices. Take fewer or smaller profiles."
        )
    return profiles
