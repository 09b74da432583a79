"""What admins do, and what holds by their word."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    # --- modes ---------------------------------------------------------------------------------------------------------
    "mode_observe": (
        "The broker only observes: it takes nothing, announces nothing and leaves every environment as it is.",
        "El broker solo observa: no retira nada, no avisa de nada y deja todos los entornos como están.",
    ),
    "mode_advise": (
        "The broker only advises: it announces when a GPU should go back, but takes none.",
        "El broker solo aconseja: avisa de cuándo debería devolverse una GPU, pero no retira ninguna.",
    ),
    "mode_enforce": (
        "The broker enforces its rules: an idle GPU that somebody waits for goes back after a notice.",
        "El broker aplica sus reglas: una GPU inactiva que alguien espera se devuelve tras un aviso.",
    ),
    "mode_set": (
        "The mode was set to {mode} by {by}.",
        "El modo pasó a {mode}, por {by}.",
    ),
    "mode_set_for": (
        "The mode was set to {mode} for {what} by {by}.",
        "El modo pasó a {mode} para {what}, por {by}.",
    ),
    "mode_unset_for": (
        "The mode of its own that {what} had was taken away by {by}; the one for all holds there again.",
        "El modo propio de {what} lo quitó {by}; allí rige de nuevo el de todos.",
    ),
    "no_such_gpu": (
        "There is no GPU {gpu} here. `gpubroker gpus` lists them.",
        "Aquí no hay ninguna GPU {gpu}. `gpubroker gpus` las enumera.",
    ),
}
