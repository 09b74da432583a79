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
    "policy_applied_by": (
        "The rules were changed by {by}.",
        "Las reglas las cambió {by}.",
    ),
    # --- devices -------------------------------------------------------------------------------------------------------
    "gpu_disabled": (
        "This GPU was taken out by {by}: {why}. It is lent to nobody until `gpubroker admin gpus enable`.",
        "Esta GPU la retiró {by}: {why}. No se presta a nadie hasta `gpubroker admin gpus enable`.",
    ),
    "gpu_enabled": (
        "This GPU was put back by {by}; it is lent again once it is seen clear.",
        "Esta GPU la devolvió {by}; se presta de nuevo cuando se vea libre.",
    ),
    "vouched": (
        "{by} vouched that nobody is on it: {why}.",
        "{by} aseguró que no la usa nadie: {why}.",
    ),
    "no_such_slot": (
        "There is no slot {slot} here. `gpubroker gpus` lists them.",
        "Aquí no hay ninguna ranura {slot}. `gpubroker gpus` las enumera.",
    ),
    "slot_not_usable": (
        "{slot} cannot be used at present, whoever vouches for it. `gpubroker gpus` says why.",
        "{slot} no puede usarse ahora, por más que se asegure. `gpubroker gpus` dice por qué.",
    ),
    "slot_held": (
        "Somebody holds {slot}. `gpubroker admin leases` says who; revoke that lease first.",
        "Alguien tiene {slot}. `gpubroker admin leases` dice quién; revoque antes esa concesión.",
    ),
    # --- leases --------------------------------------------------------------------------------------------------------
    "revoked": (
        "{by} wants this GPU back: {why}. The notice is {notice_ms}.",
        "{by} reclama esta GPU: {why}. El aviso es de {notice_ms}.",
    ),
    "lease_revoked": (
        (
            "The GPU goes back in {due_ms}, by an admin's word: {why}. "
            "Save what you need; `%gpu release` gives it back now."
        ),
        (
            "La GPU se devolverá en {due_ms}, por orden de la administración: {why}. "
            "Guarde lo que necesite; `%gpu release` la devuelve ya."
        ),
    ),
    "revoked_for_good": (
        "An admin wants this GPU back, so it cannot be kept. Save what you need, or ask the admin.",
        "La administración reclama esta GPU, así que no puede conservarse. Guarde lo que necesite, o hable con ella.",
    ),
    "no_lease_of_anybody": (
        "There is no such lease. `gpubroker admin leases` lists all.",
        "No hay tal concesión. `gpubroker admin leases` las enumera todas.",
    ),
    "usage_summary": (
        (
            "{held_ms} of GPU time were held: {productive_ms} at work, {idle_ms} idle, {wanted_ms} of it while somebody "
            "waited. The rules took {taken} leases; enforced, they would have freed {spared_ms} more, and so "
            "interrupted {interrupted} people."
        ),
        (
            "Se tuvieron {held_ms} de tiempo de GPU: {productive_ms} trabajando, {idle_ms} sin uso, {wanted_ms} de ello "
            "mientras alguien esperaba. Las reglas retiraron {taken} concesiones; aplicadas, habrían liberado {spared_ms} más, "
            "interrumpiendo a {interrupted} personas."
        ),
    ),
    "no_such_gpu": (
        "There is no GPU {gpu} here. `gpubroker gpus` lists them.",
        "Aquí no hay ninguna GPU {gpu}. `gpubroker gpus` las enumera.",
    ),
}
