"""What a browser may ask of the broker: a table. What is not in it does not pass.

A page acts for the person who is logged in, with the rights of the Jupyter server's user; it is no process that holds a GPU. So
it may look, ask, keep, give back and cancel, but not speak for a process: it cannot say that a device is applied or free.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from ..wire import routes
from ..wire.bodies import KeepBody, Kind, RequestBody, UnparkBody
from ..wire.views import Problem

PREFIX = "gpubroker/v1"
BATCH = "gpubroker/batch"

Body = TypeVar("Body", bound=msgspec.Struct)

_ID_IN_PATH = re.compile(r"(?<=/)[0-9a-f]{32}(?=[:/]|$)")
_WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])")


class ReleaseChoice(msgspec.Struct, frozen=True):
    """Of a `ReleaseBody` the kind alone: that it was done already is for the process to say."""

    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """`body` is all that is passed on of what was sent."""

    route: routes.Route[Any]
    body: type[msgspec.Struct] = routes.Nothing


class NoPassage(Exception):
    """What was asked does not pass; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


PASSAGES = (
    Passage(routes.HEALTH),
    Passage(routes.ME),
    Passage(routes.GPUS),
    Passage(routes.QUEUE),
    Passage(routes.SESSIONS),
    Passage(routes.SESSION),
    Passage(routes.LEASES),
    Passage(routes.LEASE),
    Passage(routes.WHY_LEASE),
    Passage(routes.KEEP, KeepBody),
    Passage(routes.RELEASE, ReleaseChoice),
    Passage(routes.PARK, ReleaseChoice),
    Passage(routes.UNPARK, UnparkBody),
    Passage(routes.REQUESTS),
    Passage(routes.REQUEST),
    Passage(routes.WHY_REQUEST),
    Passage(routes.PUT_REQUEST, RequestBody),
    Passage(routes.OUTLOOK, RequestBody),
    Passage(routes.CANCEL_REQUEST),
    Passage(routes.JOBS),
    Passage(routes.JOB),
    Passage(routes.WHY_JOB),
    Passage(routes.CANCEL_JOB),
)
_BY_PATH: dict[tuple[str, str], Passage] = {
    (passage.route.method, passage.route.path): passage for passage in PASSAGES
}


def find(method: str, path: str) -> tuple[Passage, str | None]:
    """The passage for a path below `PREFIX`, and the id in it."""
    template, count = _ID_IN_PATH.subn("{id}", path)
    passage = _BY_PATH.get((method, template))
    if passage is None or count > 1:
        raise NoPassage(problem(404, "no_such_route"))
    found = _ID_IN_PATH.search(path)
    return passage, found[0] if found else None


def parse(passage: Passage, content_type: str, content: bytes) -> msgspec.Struct | None:
    """The body to pass on, None where there is none to send."""
    if passage.body is routes.Nothing:
        return None
    return decoded(passage.body, content_type, content)


def decoded(body: type[Body], content_type: str, content: bytes) -> Body:
    """What a page sent, as `body`."""
    # A form that another site makes a browser send cannot have this type.
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise NoPassage(problem(415, "wrong_content_type"))
    if len(content) > routes.BODY_BYTES_MAX:
        raise NoPassage(problem(413, "body_too_large"))
    try:
        return msgspec.json.decode(content, type=body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NoPassage(problem(422, "bad_body", why=str(error)[:300])) from error


def wait_s(prefer: str) -> int:
    """The seconds of a `Prefer: wait=N` header, within what the broker allows."""
    found = _WAIT.search(prefer)
    return min(int(found[1]), routes.WAIT_S_MAX) if found else 0


def problem(status: int, code: str, **values: str) -> Problem:
    """A problem of this server's own, in words."""
    title, english, spanish = _SENTENCES[code]
    return Problem(
        status, code, title, english.format(**values), spanish.format(**values), dict(values)
    )


# code: title, sentence in English and Spanish
_SENTENCES = {
    "no_such_route": (
        "Not found",
        "The broker cannot be asked this from a browser.",
        "Esto no puede pedirse al broker desde el navegador.",
    ),
    "wrong_content_type": (
        "Unsupported media type",
        "The body must be application/json.",
        "El cuerpo debe ser application/json.",
    ),
    "body_too_large": (
        "Too large",
        f"The body is larger than {routes.BODY_BYTES_MAX} bytes. Send less.",
        f"El cuerpo ocupa más de {routes.BODY_BYTES_MAX} bytes. Envíe menos.",
    ),
    "bad_body": (
        "Unprocessable",
        "The body cannot be read: {why}.",
        "No se puede leer el cuerpo: {why}.",
    ),
    "kernel_not_here": (
        "Not found",
        "This kernel is not one that this Jupyter server lends GPUs to, so none can be asked for it. Restart the kernel.",
        "Este servidor Jupyter no presta GPU a este kernel, así que no puede pedirse ninguna para él. Reinicie el kernel.",
    ),
    "no_command": (
        "No command",
        "There is no command to run. Write one, such as `python train.py`.",
        "No hay ninguna orden que ejecutar. Escriba una, como `python train.py`.",
    ),
    "nul_in_command": (
        "Unprocessable",
        "The command has a NUL character in it, which no program can be given. Take it out and submit again.",
        "La orden contiene un carácter NUL, que ningún programa puede recibir. Quítelo y envíela otra vez.",
    ),
    "open_quote": (
        "Unprocessable",
        "A quotation mark of the command is not closed, so its words are not clear. Close it and submit again.",
        "En la orden hay unas comillas sin cerrar y no se sabe cuáles son sus palabras. Ciérrelas y envíela otra vez.",
    ),
    "no_such_folder": (
        "Not found",
        "There is no folder `{path}` on this server, so nothing was submitted. Choose one that the file browser shows.",
        "En este servidor no hay ninguna carpeta `{path}`, así que no se envió nada. Elija una del explorador de archivos.",
    ),
    "no_such_notebook": (
        "Not found",
        "The notebook `{path}` cannot be read, so it was not submitted. Save it and try again.",
        "No se puede leer el cuaderno `{path}`, así que no se envió. Guárdelo e inténtelo de nuevo.",
    ),
    "not_on_disk": (
        "Not possible here",
        "This server keeps its files elsewhere than on its disk, where a batch job would need them. Submit it from a terminal.",
        "Este servidor no guarda sus archivos en su disco, donde un trabajo los necesitaría. Envíelo desde un terminal.",
    ),
    "just_submitted": (
        "Conflict",
        "This notebook was submitted a moment ago; see its job. To run it once more, submit it again.",
        "Este cuaderno se envió hace un momento; vea su trabajo. Para ejecutarlo otra vez, envíelo de nuevo.",
    ),
    "submit_too_slow": (
        "Too slow",
        "The job could not be submitted within a minute. See whether it is listed; if not, try again.",
        "El trabajo no pudo enviarse en un minuto. Mire si está en la lista; si no, inténtelo de nuevo.",
    ),
    "not_submitted": (
        "Not submitted",
        "The job was not submitted. {why}",
        "El trabajo no se envió. ({why})",
    ),
    "not_allowed": (
        "Forbidden",
        "You are not logged in to this server, or not allowed to do this. Log in and try again.",
        "No ha iniciado sesión en este servidor, o no se le permite esto. Inicie sesión e inténtelo de nuevo.",
    ),
    "bad_call": (
        "Bad request",
        "The request could not be understood.",
        "No se pudo entender la petición.",
    ),
    "server_failed": (
        "Server error",
        "Something went wrong in the Jupyter server; its log says more.",
        "Algo falló en el servidor Jupyter; su registro dice más.",
    ),
    "broker_down": (
        "No broker",
        "{why} Notebooks go on without it; `gpubroker doctor` says what to do.",
        "El broker no responde. Los cuadernos siguen sin él; `gpubroker doctor` dice qué hacer. ({why})",
    ),
    "switched_off": (
        "Switched off",
        "GPUs are not lent here: the broker is switched off. `gpubroker on` switches it on for the next server.",
        "Aquí no se prestan GPU: el broker está apagado. `gpubroker on` lo enciende para el próximo servidor.",
    ),
}  # fmt: skip
