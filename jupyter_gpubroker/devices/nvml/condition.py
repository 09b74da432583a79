"""The condition of a GPU: power, temperature, memory errors, what the driver asks for, and the errors it reported.

Reported errors (Xid) come through an event set and only from its creation on. The recovery action is a state, so it also
tells of what happened while nobody listened (scitix/sichek#121).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import wraps

import pynvml

from ..reader import GpuReading, Xid
from .calls import FAILURES, NOT_OFFERED, Calls, Handle, error_name

# Values of field 230, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION (nvml.h).
RECOVERY_ACTIONS = (
    "none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot",
)  # fmt: skip
XID_DOUBLE_BIT = 48
_NO_INSTANCE = 0xFFFFFFFF
_EVENTS_MAX = 64
_WANTED = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError


def gpu_reading(
    calls: Calls, uuid: str, handle: Handle, xids: tuple[Xid, ...], idle_mw: int | None
) -> GpuReading:
    power_mw, _ = calls.ask_for("power", pynvml.nvmlDeviceGetPowerUsage, handle)
    temperature_c, _ = calls.ask_for(
        "temperature", pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU
    )
    ecc, _ = calls.ask_for(
        "ecc",
        pynvml.nvmlDeviceGetTotalEccErrors,
        handle,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    action = recovery_action(calls, handle)
    return GpuReading(
        uuid,
        "lost" if calls.is_lost else "ok",
        power_mw,
        idle_mw,
        temperature_c,
        ecc,
        action,
        xids,
        calls.missing,
    )


def recovery_action(calls: Calls, handle: Handle) -> str | None:
    """Its name; one that has none yet by its number."""
    code, _ = calls.ask_for("recovery_action", _recovery_action, handle)
    if code is None:
        return None
    return RECOVERY_ACTIONS[code] if 0 <= code < len(RECOVERY_ACTIONS) else f"action_{code}"


@wraps(pynvml.nvmlDeviceGetFieldValues)
def _recovery_action(handle: Handle) -> int:
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    # A field has an error of its own: drivers before 570 do not know this one.
    if value.nvmlReturn == pynvml.NVML_ERROR_INVALID_ARGUMENT:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(value.nvmlReturn)
    return int(value.value.uiVal)


class Faults:
    """Listens to the driver's error events of all GPUs."""

    def __init__(self) -> None:
        self._events: Handle | None = None
        self._uuids: dict[int, str] = {}

    def listen(self, gpus: Mapping[str, Handle]) -> None:
        """Listen to those not yet listened to; a GPU without events is not sick for it (k8s-device-plugin#1562)."""
        calls = Calls()
        if self._events is None:
            self._events = calls.ask(pynvml.nvmlEventSetCreate)
        for uuid, handle in gpus.items():
            if self._events is None or uuid in self._uuids.values():
                continue
            offered = calls.ask(
                pynvml.nvmlDeviceGetSupportedEventTypes, handle, expected=NOT_OFFERED
            )
            wanted = (offered or 0) & _WANTED
            if wanted and not _fails(calls, handle, wanted, self._events):
                self._uuids[_address(handle)] = uuid

    def is_heard(self, uuid: str) -> bool:
        return uuid in self._uuids.values()

    def take(self) -> dict[str, tuple[Xid, ...]]:
        """What was reported since the last call, by GPU."""
        found: dict[str, tuple[Xid, ...]] = {}
        for _ in range(_EVENTS_MAX if self._events is not None else 0):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._events, 0)
            except FAILURES as error:
                if error_name(error) == "Timeout":
                    break
                continue  # it may return early, and a lost GPU says so here too (nvml.h)
            uuid = self._uuids.get(_address(event.device))
            if uuid is not None:
                found[uuid] = (*found.get(uuid, ()), _xid(event))
        return found

    def close(self) -> None:
        events, self._events, self._uuids = self._events, None, {}
        if events is not None:
            Calls().ask(pynvml.nvmlEventSetFree, events)


def _xid(event: pynvml.c_nvmlEventData_t) -> Xid:
    is_ecc = event.eventType == pynvml.nvmlEventTypeDoubleBitEccError
    instance = None if event.gpuInstanceId == _NO_INSTANCE else int(event.gpuInstanceId)
    return Xid(XID_DOUBLE_BIT if is_ecc else int(event.eventData), instance)


def _fails(calls: Calls, handle: Handle, wanted: int, events: Handle) -> bool:
    known = len(calls.problems)
    calls.ask(pynvml.nvmlDeviceRegisterEvents, handle, wanted, events)
    return len(calls.problems) > known


def _address(handle: Handle) -> int:
    """Handles are pointers to the library's records and equal for the same device."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
