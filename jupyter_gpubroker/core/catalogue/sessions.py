"""Sessions: processes that come, restart and go."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    "session_opened": ("The session was opened.", "Se abrió la sesión."),
    "session_described": (
        "The Jupyter server described the session.",
        "El servidor Jupyter describió la sesión.",
    ),
    "session_reported": ("The kernel is {activity}.", "El kernel está {activity}."),
    "offer_made": (
        "The process said how the GPU could be given back.",
        "El proceso indicó cómo podría devolverse la GPU.",
    ),
    "restart_announced": (
        "The kernel is being restarted; its GPU waits for it.",
        "El kernel se está reiniciando; su GPU lo espera.",
    ),
    "restarted": ("The kernel was restarted.", "El kernel se reinició."),
    "not_restarted": (
        "The restart was not carried out within {after_ms}; the kernel goes on and keeps what it held.",
        "El reinicio no se llevó a cabo en {after_ms}; el kernel sigue y conserva lo que tenía.",
    ),
    "restart_not_finished": (
        "The kernel did not come back within {after_ms} of its restart, so what it held was taken back. Ask again.",
        "El kernel no volvió en {after_ms} tras su reinicio, así que se retiró lo que tenía. Pídalo de nuevo.",
    ),
    "session_replaced": (
        "Another process took the place of this one.",
        "Otro proceso ocupó el lugar de este.",
    ),
    "process_gone": ("Its process has ended.", "Su proceso terminó."),
    "shut_down": ("It was shut down.", "Se cerró."),
    "session_over": (
        "This session is over. Restart the kernel to begin a new one.",
        "Esta sesión terminó. Reinicie el kernel para empezar otra.",
    ),
    "no_such_session": (
        "There is no such session of yours. Register it first.",
        "No hay tal sesión suya. Regístrela primero.",
    ),
}
