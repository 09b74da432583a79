"""Errors as people read them: RFC 9457 problem documents with what happened, why and what to do, in two languages.

Reasons of decisions are rendered by `core.explain`; here are the sentences for what goes wrong before anything is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from ...core.explain import sentence
from ...core.model import Reason
from ...wire.views import Problem

_SENTENCES: Mapping[str, tuple[str, str]] = {
    "no_such_route": (
        "There is nothing at {path}. See /v1/openapi.json for what there is.",
        "No hay nada en {path}. En /v1/openapi.json está lo que hay.",
    ),
    "method_not_allowed": (
        "{method} is not possible here; possible: {allowed}.",
        "{method} no es posible aquí; es posible: {allowed}.",
    ),
    "no_browsers": (
        "The broker does not talk to web pages. Use Jupyter's panel or the gpubroker command.",
        "El broker no habla con páginas web. Use el panel de Jupyter o la orden gpubroker.",
    ),
    "not_served": ("{why}", "{why}"),
    "admins_only": (
        (
            "Only members of the group {group} administer this broker. Ask one of them; or root adds you "
            "(usermod -aG {group} NAME), which counts from your next login on."
        ),
        (
            "Solo los miembros del grupo {group} administran este broker. Pídalo a uno; o root le añade "
            "(usermod -aG {group} NOMBRE), lo que vale desde su próxima sesión."
        ),
    ),
    "wrong_content_type": (
        "The body must be {wanted}, not '{given}'. Set the Content-Type header.",
        "El cuerpo debe ser {wanted}, no '{given}'. Indique la cabecera Content-Type.",
    ),
    "body_too_large": (
        "The body is larger than {limit} bytes. Send less.",
        "El cuerpo ocupa más de {limit} bytes. Envíe menos.",
    ),
    "bad_body": (
        "The body cannot be read: {why}. See /v1/openapi.json for its form.",
        "No se puede leer el cuerpo: {why}. En /v1/openapi.json está su forma.",
    ),
    "unknown_query": (
        "There is no query argument '{name}' here; known: {known}.",
        "Aquí no existe el argumento '{name}'; se conocen: {known}.",
    ),
    "bad_call": ("The request is not valid HTTP.", "La petición no es HTTP válido."),
    "bad_policy": ("{why}", "{why}"),
    "no_such_process": (
        "There is no process {pid}. Register a session while its process lives.",
        "No existe el proceso {pid}. Registre la sesión mientras su proceso viva.",
    ),
    "process_not_yours": (
        "Process {pid} belongs to another user. Register your own processes only.",
        "El proceso {pid} es de otra persona. Registre solo procesos propios.",
    ),
    "broker_overloaded": (
        "The broker has too much to do. Try again in a moment.",
        "El broker está saturado. Inténtelo de nuevo en un momento.",
    ),
    "not_ready": (
        "The devices were not looked at yet. Try again in a moment.",
        "Aún no se han examinado los dispositivos. Inténtelo de nuevo en un momento.",
    ),
    "which_id": (
        "Say of what: /v1/why?of=ID, where ID may be the beginning of one.",
        "Diga de qué: /v1/why?of=ID, donde ID puede ser el comienzo de uno.",
    ),
    "unknown_id": (
        "You have, and lately had, no lease, request or job whose id begins with '{prefix}'.",
        "No tiene, ni tuvo hace poco, ninguna concesión, petición o trabajo cuyo id empiece por '{prefix}'.",
    ),
    "ambiguous_id": (
        "'{prefix}' may be any of {listed}. Write more of the id.",
        "'{prefix}' puede ser cualquiera de {listed}. Escriba más del id.",
    ),
    "broker_in_use": (
        "The broker is in use (leases: {leases}, waiting requests: {requests}, batch jobs: {jobs}), so it goes on.",
        "El broker está en uso (concesiones: {leases}, peticiones en espera: {requests}, trabajos: {jobs}), así que sigue.",
    ),
    "broker_attended": (
        "Kernels, commands or pages work with this broker, so it goes on.",
        "Hay kernels, órdenes o páginas que trabajan con este broker, así que sigue.",
    ),
    "broker_stopping": (
        "The broker ends. Whoever needs one starts it anew, and it finds everything as it was.",
        "El broker termina. Quien lo necesite lo inicia de nuevo, y lo encuentra todo como estaba.",
    ),
    "bad_number": (
        "'{name}' must be a whole number, not '{given}'.",
        "'{name}' debe ser un número entero, no '{given}'.",
    ),
    "no_mode_given": (
        "Say observe, advise or enforce.",
        "Indique observe, advise o enforce.",
    ),
    "gpu_or_group": (
        "A mode is for a GPU or for a group, not for both at once.",
        "Un modo es para una GPU o para un grupo, no para ambos a la vez.",
    ),
    "archive_unreadable": ("{why}", "{why}"),
    "internal_error": (
        "Something went wrong in the broker; nothing was changed. Its log says more.",
        "Algo falló en el broker; no se cambió nada. Su registro dice más.",
    ),
}


def problem_of(status: int, reason: Reason) -> Problem:
    values = dict(reason.values)
    if reason.code in _SENTENCES:
        detail, detail_es = (text.format(**values) for text in _SENTENCES[reason.code])
    else:
        detail, detail_es = sentence(reason)
    title = HTTPStatus(status).phrase
    return Problem(status, reason.code, title, detail, detail_es, values)
