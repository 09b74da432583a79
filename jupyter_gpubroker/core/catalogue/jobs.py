"""Batch jobs, from submission to their end."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    "submitted": ("The job was submitted.", "El trabajo se envió."),
    "job_starting": (
        "Granted: {what}. The runner starts the job.",
        "Se concedió: {what}. El runner inicia el trabajo.",
    ),
    "job_running": (
        "The job has been running for {for_ms}.",
        "El trabajo lleva {for_ms} en marcha.",
    ),
    "job_running_limited": (
        "The job has been running for {for_ms} of at most {limit_ms}.",
        "El trabajo lleva {for_ms} en marcha, de un máximo de {limit_ms}.",
    ),
    "job_stopping": (
        "The job was asked to stop; it is killed in {kill_ms} if it does not.",
        "Se pidió al trabajo que pare; si no lo hace, se matará en {kill_ms}.",
    ),
    "job_started": ("The job was started.", "El trabajo se inició."),
    "job_ended": (
        "The job {outcome} (exit status {exit_status}).",
        "El trabajo {outcome} (estado de salida {exit_status}).",
    ),
    "job_killed": (
        "The job {outcome} (ended by signal {signal}).",
        "El trabajo {outcome} (terminado por la señal {signal}).",
    ),
    "job_over": ("The job {outcome}.", "El trabajo {outcome}."),
    "job_cancelled": ("The job was cancelled.", "El trabajo se canceló."),
    "job_time_limit": (
        "The job reached its time limit of {limit_ms} and was stopped. Submit it with a longer --time.",
        "El trabajo alcanzó su límite de {limit_ms} y se paró. Envíelo con un --time mayor.",
    ),
    "preempted": (
        "After {ran_ms} the job makes way for a request of the queue {queue}, which goes first. It waits again at its place.",
        "Tras {ran_ms} el trabajo cede el paso a una petición de la cola {queue}, que va antes. Vuelve a esperar en su puesto.",
    ),
    "job_not_stopped": (
        "The job did not stop when asked to, and nobody reported its end.",
        "El trabajo no paró cuando se le pidió, y nadie informó de su fin.",
    ),
    "not_started": (
        "The runner did not start the job within {after_ms} (attempt {attempt}), so it waits again at its old place.",
        "El runner no inició el trabajo en {after_ms} (intento {attempt}), así que vuelve a esperar en su antiguo puesto.",
    ),
    "runner_silent": (
        "The runner did not start the job in {attempts} attempts, so it was given up. Submit it again.",
        "El runner no inició el trabajo en {attempts} intentos, así que se abandonó. Envíelo de nuevo.",
    ),
    "lease_lost": (
        "The job's GPU came free without word of its end, so the job counts as lost.",
        "La GPU del trabajo se liberó sin noticia de su fin, así que se da por perdido.",
    ),
    "job_not_running": (
        "The job is not running; it waits in line.",
        "El trabajo no está en marcha; espera en la cola.",
    ),
    "attempt_over": (
        "Attempt {attempt} of the job was given up; it is at attempt {now}. Stop what still runs of it.",
        "El intento {attempt} del trabajo se abandonó; va por el intento {now}. Detenga lo que aún quede de él.",
    ),
    "job_not_starting": (
        "The job was not to be started now. Look at its state again.",
        "El trabajo no debía iniciarse ahora. Consulte de nuevo su estado.",
    ),
    "not_a_runner": (
        "A job needs its owner's runner. `gpubroker submit` starts one.",
        "Un trabajo necesita el runner de su titular. `gpubroker submit` inicia uno.",
    ),
    "no_such_job": (
        "There is no such job of yours. `gpubroker jobs` lists them.",
        "No hay tal trabajo suyo. `gpubroker jobs` los enumera.",
    ),
}
