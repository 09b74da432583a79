"""Devices: found, lost, in somebody's use, out of sight."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    "device_reported": ("The device was found.", "Se encontró el dispositivo."),
    "device_lost": (
        "The GPU cannot be used: the driver says `{state}`. Save your work; the admin must look at it.",
        "La GPU no puede usarse: el controlador dice `{state}`. Guarde su trabajo; debe revisarla el administrador.",
    ),
    "slot_removed": (
        "The GPU was partitioned anew and no longer offers this part.",
        "La GPU se volvió a dividir y ya no ofrece esta parte.",
    ),
    "no_longer_simulated": (
        "This simulated GPU is not simulated any more.",
        "Esta GPU simulada ya no se simula.",
    ),
    "device_back": ("The GPU is there again.", "La GPU vuelve a estar disponible."),
    "device_gone": (
        "The GPU is not there any more, so nobody is on it.",
        "La GPU ya no está, así que nadie la ocupa.",
    ),
    "process_on_slot": (
        "Process {pid}, of {whose}, is on the GPU. It is not handed on before that process is gone.",
        "El proceso {pid}, de {whose}, está en la GPU. No se entrega a nadie hasta que ese proceso termine.",
    ),
    "parked_computes": (
        "Somebody computes on the GPU beside what was parked on it. It is not handed on before that stops.",
        "Alguien calcula en la GPU junto a lo que se aparcó en ella. No se entrega a nadie hasta que termine.",
    ),
    "memory_in_use": (
        (
            "{memory_mib} of memory is in use on the GPU, more than the {floor_mib} of an empty one. "
            "It is not handed on before that is freed."
        ),
        (
            "En la GPU hay {memory_mib} de memoria en uso, más de los {floor_mib} de una vacía. "
            "No se entrega a nadie hasta que se libere."
        ),
    ),
    "seen_clear": (
        "Nobody is on the GPU, judged by {judged_by}.",
        "No hay nadie en la GPU, a juzgar por {judged_by}.",
    ),
    "alone_again": (
        "Nobody else is on the GPU any more.",
        "Ya no hay nadie más en la GPU.",
    ),
    "not_observable": (
        "Neither processes nor memory of the GPU can be read, so it is not handed on. `gpubroker doctor` says more.",
        "No se pueden leer ni los procesos ni la memoria de la GPU, así que no se entrega. `gpubroker doctor` dice más.",
    ),
    "floor_measured": (
        "The empty GPU uses {floor_mib} of memory.",
        "La GPU vacía ocupa {floor_mib} de memoria.",
    ),
    "observed": ("The devices were looked at.", "Se examinaron los dispositivos."),
    "clear_overdue": (
        (
            "Somebody is still on the GPU {after_ms} after it was let go of, so it is held back. "
            "It comes free when that process ends; the admin can end it."
        ),
        (
            "Alguien sigue en la GPU {after_ms} después de que se soltara, así que se retiene. "
            "Quedará libre cuando termine ese proceso; el administrador puede terminarlo."
        ),
    ),
    "state_contradicts": (
        (
            "The broker's database contradicts itself ({why}), so nothing is granted or taken; what it says can be read. "
            "Stop the broker, move the database away to begin with an empty one, and keep it for a report."
        ),
        (
            "La base de datos del broker se contradice ({why}), así que nada se concede ni se retira; puede leerse. "
            "Detenga el broker, aparte la base de datos para empezar con una vacía, y guárdela para un informe."
        ),
    ),
    "no_gpu": (
        (
            "There is no NVIDIA GPU here, so everything runs on the CPU. To try things out, `gpubroker admin "
            "simulation 2xH200` makes simulated ones."
        ),
        (
            "Aquí no hay ninguna GPU de NVIDIA, así que todo se ejecuta en la CPU. Para probar, `gpubroker admin "
            "simulation 2xH200` simula algunas."
        ),
    ),
    "probe_unavailable": (
        "The GPUs cannot be read at present ({problem}). Nothing is granted or taken meanwhile; `gpubroker doctor` says more.",
        "Las GPU no pueden leerse ahora ({problem}). Mientras, nada se concede ni se retira; `gpubroker doctor` dice más.",
    ),
    "driver_unavailable": (
        (
            "The NVIDIA driver does not answer ({error}). No GPU can be had until it does; `nvidia-smi` should "
            "show the same error. Cancel to go on without."
        ),
        (
            "El controlador de NVIDIA no responde ({error}). Hasta entonces no puede concederse ninguna GPU; "
            "`nvidia-smi` debería dar el mismo error. Cancele para seguir sin ella."
        ),
    ),
}
