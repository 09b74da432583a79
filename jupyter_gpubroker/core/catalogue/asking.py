"""Asking for slots: waiting in line, being refused, being served."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    "asked": ("Asked for a GPU.", "Se pidió una GPU."),
    "asked_back": ("Asked to have the parked GPU back.", "Se pidió recuperar la GPU aparcada."),
    "granted": (
        "The GPU was granted after a wait of {waited_ms}.",
        "La GPU se concedió tras una espera de {waited_ms}.",
    ),
    # --- in line -------------------------------------------------------------------------------------------------------
    "waiting_expected": (
        "Waiting at place {place} of {waiting}; the turn is expected in {expected_ms}.",
        "Esperando en el puesto {place} de {waiting}; el turno se espera en {expected_ms}.",
    ),
    "waiting_next": (
        "Next in line: the GPU is just being checked, and comes in a moment.",
        "El siguiente de la cola: la GPU se está comprobando, y llega en un momento.",
    ),
    "waiting": (
        (
            "Waiting at place {place} of {waiting}. Nobody can say yet when a fitting GPU comes free; "
            "`gpubroker cancel` leaves the line."
        ),
        (
            "Esperando en el puesto {place} de {waiting}. Aún no se sabe cuándo habrá una GPU adecuada; "
            "`gpubroker cancel` deja la cola."
        ),
    ),
    "waiting_held": (
        (
            "Waiting at place {place} of {waiting}. Somebody holds the GPU idle, but the process cannot give it back now; "
            "it is asked again later."
        ),
        (
            "Esperando en el puesto {place} de {waiting}. Alguien tiene la GPU inactiva, pero su proceso no "
            "puede devolverla ahora; "
            "se le pedirá de nuevo más tarde."
        ),
    ),
    "waiting_unusable": (
        "Waiting at place {place} of {waiting}. No fitting GPU can be used at present; `gpubroker gpus` says why.",
        "Esperando en el puesto {place} de {waiting}. Ninguna GPU adecuada puede usarse ahora; `gpubroker gpus` dice por qué.",
    ),
    "waiting_restart": (
        "Waiting for the restart of its kernel; the place in line is kept.",
        "Esperando el reinicio de su kernel; se conserva el puesto en la cola.",
    ),
    "devices_unknown": (
        "Waiting: the broker has just started and is looking at the devices. This takes a moment.",
        "Esperando: el broker acaba de arrancar y examina los dispositivos. Tarda un momento.",
    ),
    "wait_over": (
        "No fitting GPU came free within {waited_ms}. Ask again with a longer wait, or for something smaller.",
        "Ninguna GPU adecuada se liberó en {waited_ms}. Pídala de nuevo con más espera, o pida algo menor.",
    ),
    "cancelled_by_client": ("The request was cancelled.", "La petición se canceló."),
    "nobody_listens": (
        "The request left the line, since nobody listened for the answer any more. Ask again.",
        "La petición dejó la cola, pues ya nadie esperaba la respuesta. Pida de nuevo.",
    ),
    # --- refused -------------------------------------------------------------------------------------------------------
    "nothing_free": (
        "No fitting GPU is free now, and the request was not to wait. Ask again with a wait.",
        "Ninguna GPU adecuada está libre ahora, y se pidió no esperar. Pídala de nuevo con espera.",
    ),
    "broker_overloaded": (
        "The broker has as many connections as it can take. Try again in a moment.",
        "El broker tiene tantas conexiones como admite. Inténtelo de nuevo en un momento.",
    ),
    "bad_count": (
        "{count} is no number of GPUs. Ask for at least one.",
        "{count} no es un número de GPU. Pida al menos una.",
    ),
    "several_slices": (
        (
            "{count} slices {profile} cannot be had together: one process can use only one slice. "
            "Ask for a bigger slice or for whole GPUs."
        ),
        (
            "No se pueden tener juntas {count} porciones {profile}: un proceso solo puede usar una. "
            "Pida una porción mayor o GPU enteras."
        ),
    ),
    "unknown_model": (
        "There is no GPU of the model {model} here. Available: {available}.",
        "Aquí no hay ninguna GPU del modelo {model}. Disponible: {available}.",
    ),
    "unknown_profile": (
        "There is no slice {profile} here. Available: {available}.",
        "Aquí no hay ninguna porción {profile}. Disponible: {available}.",
    ),
    "too_many_slots": (
        "{count} such GPUs do not exist on one machine here. Available: {available}. Ask for fewer.",
        "Aquí no existen {count} GPU así en una misma máquina. Disponible: {available}. Pida menos.",
    ),
    "too_much_memory": (
        "No single GPU here has {memory_mib} of memory. Available: {available}. Ask for less, or for several GPUs.",
        "Ninguna GPU de aquí tiene {memory_mib} de memoria. Disponible: {available}. Pida menos, o varias GPU.",
    ),
    "no_whole_gpu": (
        "There is no whole GPU of that kind here. Available: {available}. Ask for a slice, or by memory.",
        "Aquí no hay ninguna GPU entera de ese tipo. Disponible: {available}. Pida una porción, o por memoria.",
    ),
    "unknown_queue": (
        "There is no queue {queue}. Known: {known}.",
        "No existe la cola {queue}. Se conocen: {known}.",
    ),
    "too_many_waiting": (
        "{waiting} of your requests wait already, and more are not allowed. Cancel some or wait.",
        "Ya esperan {waiting} peticiones suyas y no se permiten más. Cancele alguna o espere.",
    ),
    "already_holds": (
        "This session holds a GPU already (lease {lease_id}). Release it first to ask for another.",
        "Esta sesión ya tiene una GPU (concesión {lease_id}). Libérela antes de pedir otra.",
    ),
    "giving_back": (
        "This session is just giving its GPU back (lease {lease_id}). Ask again in a moment.",
        "Esta sesión está devolviendo su GPU (concesión {lease_id}). Pida de nuevo en un momento.",
    ),
    "already_waiting": (
        "This session waits already (request {request_id}). Cancel that request first.",
        "Esta sesión ya espera (petición {request_id}). Cancele antes esa petición.",
    ),
    "runner_holds_nothing": (
        "A runner holds no GPU itself. Submit a job instead.",
        "Un runner no tiene GPU propia. Envíe un trabajo.",
    ),
    "other_content": (
        "This id was used before with another content. Choose a new id.",
        "Este id ya se usó con otro contenido. Elija un id nuevo.",
    ),
    "no_such_request": (
        "There is no such request of yours. `gpubroker queue` lists them.",
        "No hay tal petición suya. `gpubroker queue` las enumera.",
    ),
    "unknown_policy": (
        "Queue {queue} names the policy {policy}, which does not exist. Define it, or name another.",
        "La cola {queue} nombra la política {policy}, que no existe. Defínala, o nombre otra.",
    ),
    "policy_applied": ("The rules were changed.", "Las reglas se cambiaron."),
    "forgotten": ("Long over, and forgotten.", "Terminado hace tiempo, y olvidado."),
}
