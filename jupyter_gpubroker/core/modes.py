"""How far the broker goes with whom: it observes, it advises, or it enforces.

Observe: no notice, nothing taken, no environment touched; what would have been taken is written down. Advise: notices, but
nothing taken. Enforce: the rules act. A GPU's own mode goes before a group's, and a group's before the one for all; of several
that hold for one lease the mildest counts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..errors import NotFound
from .draft import Draft
from .events import ModeSet
from .model import GpuId, Lease, Mode, Reason, Slot, State

MILDNESS = tuple(Mode)


def mode_set(draft: Draft, event: ModeSet) -> None:
    """An admin's word. Without a mode, the GPU or group goes by the one for all again."""
    modes = draft.state.modes
    what = event.gpu_id or event.group
    if event.gpu_id is not None:
        if event.gpu_id not in draft.state.gpus:
            raise NotFound(Reason.of("no_such_gpu", gpu=event.gpu_id))
        modes = replace(modes, gpus=_with(modes.gpus, event.gpu_id, event.mode))
    elif event.group is not None:
        modes = replace(modes, groups=_with(modes.groups, event.group, event.mode))
    elif event.mode is not None:
        modes = replace(modes, mode=event.mode)
    mode = None if event.mode is None else event.mode.value
    code = "mode_set" if what is None else "mode_set_for" if mode else "mode_unset_for"
    draft.put(modes, Reason.of(code, mode=mode, what=what, by=event.by))


def of_groups(state: State, groups: Collection[str]) -> Mode:
    """What holds for somebody who is in these groups, apart from single GPUs."""
    own = [mode for group, mode in state.modes.groups if group in groups]
    return mildest(own) if own else state.modes.mode


def of_lease(state: State, lease: Lease) -> Mode:
    modes = state.modes
    if not (modes.gpus or modes.groups):
        return modes.mode
    session = state.sessions.get(lease.session_id)
    usual = of_groups(state, () if session is None else session.groups)
    by_gpu = dict(modes.gpus)
    gpu_ids = {state.slots[hold.slot_id].gpu_id for hold in lease.holds}
    return mildest([by_gpu.get(gpu_id, usual) for gpu_id in gpu_ids]) if gpu_ids else usual


def of_slot(state: State, slot: Slot) -> Mode:
    """What holds for whoever uses the slot without a lease."""
    return dict(state.modes.gpus).get(slot.gpu_id, state.modes.mode)


def mildest(modes: Collection[Mode]) -> Mode:
    return min(modes, key=MILDNESS.index)


def _with(
    pairs: tuple[tuple[str, Mode], ...] | tuple[tuple[GpuId, Mode], ...],
    key: str,
    mode: Mode | None,
) -> tuple[tuple[str, Mode], ...]:
    kept = {**dict(pairs), key: mode}
    return tuple((name, one) for name, one in sorted(kept.items()) if one is not None)
