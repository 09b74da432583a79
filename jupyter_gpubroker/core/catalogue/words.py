"""People's words for the core's, by the name of the value that carries them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

Pair = tuple[str, str]

WORDS: Mapping[str, Mapping[str, Pair]] = MappingProxyType(
    {
        "verdict": {
            "active": ("working on the GPU", "trabajando en la GPU"),
            "host_busy": ("running code that does not use the GPU", "ejecutando código que no usa la GPU"),
            "waiting_user": ("waiting at a prompt or breakpoint", "esperando en un punto de entrada o de parada"),
            "idle": ("idle", "inactivo"),
            "never_used": ("holding the GPU without having used it", "sin usar la GPU"),
            "serving": ("serving requests", "atendiendo peticiones"),
            "suspect": ("behaving oddly", "comportándose de forma extraña"),
            "unknown": ("out of sight", "fuera de la vista"),
        },
        "kind": {
            "empty": ("letting go of the unused device", "soltar el dispositivo sin usar"),
            "parked": ("parking its contents in host memory", "aparcar su contenido en la memoria del equipo"),
            "checkpointed": ("suspending it by the driver", "suspenderla mediante el controlador"),
            "restarted": ("restarting the kernel", "reiniciar el kernel"),
            "kept": ("keeping it", "conservarla"),
        },
        "whose": {
            "session": ("another session of this broker", "otra sesión de este broker"),
            "job": ("another batch job of this broker", "otro trabajo por lotes de este broker"),
            "foreign": ("nobody known here", "nadie conocido aquí"),
            "unmapped": ("somebody who cannot be seen from here", "alguien a quien no se ve desde aquí"),
        },
        "judged_by": {
            "processes": ("its list of processes", "su lista de procesos"),
            "memory": ("its memory alone, since processes cannot be told here",
                       "solo su memoria, ya que aquí no se distinguen los procesos"),
        },
        "why": {
            "no_longer_wanted": ("nobody waits for it any more", "ya nadie la espera"),
            "only_observed": ("the broker only observes now", "ahora el broker solo observa"),
            "no_longer_idle": ("it is in use again", "vuelve a estar en uso"),
        },
        "mode": {
            "observe": ("observe", "observar"),
            "advise": ("advise", "aconsejar"),
            "enforce": ("enforce", "aplicar"),
        },
        "error": {
            "ecc": ("memory errors that it could not correct", "errores de memoria que no pudo corregir"),
            "recovery": ("that it must recover", "que debe recuperarse"),
        },
        "remedy": {
            "drain": ("it comes back by itself if nothing new is seen", "volverá por sí sola si no se ve nada nuevo"),
            "reset": ("the admin should reset it", "el administrador debería reiniciarla"),
            "reboot": ("the admin should reboot the machine", "el administrador debería reiniciar el equipo"),
        },
        "outcome": {
            "finished": ("finished", "terminó"),
            "failed": ("failed", "falló"),
            "cancelled": ("was cancelled", "fue cancelado"),
            "timed_out": ("reached its time limit", "alcanzó su límite de tiempo"),
            "lost": ("was lost", "se perdió"),
        },
        "activity": {
            "unknown": ("not visible", "no visible"),
            "idle": ("idle", "inactivo"),
            "running": ("running a cell", "ejecutando una celda"),
            "input": ("waiting for input", "esperando una entrada"),
            "debugger": ("stopped in the debugger", "parado en el depurador"),
        },
    }
)  # fmt: skip
