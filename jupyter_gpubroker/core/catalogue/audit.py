"""Use of a GPU without a lease."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    "own_use_unleased": (
        (
            "Process {pid} of this notebook is on a GPU ({slot}) that was not lent to it, so nobody else can have it. "
            "End the process, or run `%gpu request` and start it again."
        ),
        (
            "El proceso {pid} de este cuaderno está en una GPU ({slot}) que no se le prestó, así que nadie más puede usarla. "
            "Termínelo, o ejecute `%gpu request` y vuelva a iniciarlo."
        ),
    ),
    "own_use_parked": (
        (
            "This notebook computes on a GPU ({slot}) that it has parked (process {pid}). "
            "Stop the computation, or run `%gpu unpark` first."
        ),
        (
            "Este cuaderno calcula en una GPU ({slot}) que tiene aparcada (proceso {pid}). "
            "Detenga el cálculo, o ejecute antes `%gpu unpark`."
        ),
    ),
    "own_use_left": (
        (
            "Process {pid} of this notebook's last kernel is still on the GPU ({slot}) that was given back. "
            "End it, so that the GPU can be handed on."
        ),
        (
            "El proceso {pid} del último kernel de este cuaderno sigue en la GPU ({slot}) que se devolvió. "
            "Termínelo, para que la GPU pueda entregarse."
        ),
    ),
    "left_behind": (
        (
            "{count} processes of the notebook or job that ended are still running (such as {pid}) and may use the GPU. "
            "It is not handed on before they are gone; end them with `kill {pid}`."
        ),
        (
            "Siguen en marcha {count} procesos del cuaderno o trabajo que terminó (como {pid}) y pueden usar la GPU. "
            "No se entrega a nadie hasta que terminen; termínelos con `kill {pid}`."
        ),
    ),
}
