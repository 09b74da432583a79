"""Holding slots: what a lease is doing, notice, keep, release."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    # --- what it is doing ----------------------------------------------------------------------------------------------
    "lease_granted": (
        "Granted: {what}. The process has {left_ms} to confirm it.",
        "Se concedió: {what}. El proceso tiene {left_ms} para confirmarlo.",
    ),
    "lease_resuming": (
        "Granted again: {what}. What was parked is on its way back.",
        "Se volvió a conceder: {what}. Lo aparcado está volviendo.",
    ),
    "lease_active": (
        "Held and in use: {what}.",
        "Se tiene, y en uso: {what}.",
    ),
    "lease_quiet": (
        (
            "Held: {what}. The notebook or job has been {verdict} for {for_ms}. After {limit_ms} of this, what it "
            "holds may go to somebody who waits."
        ),
        "Se tiene: {what}. El cuaderno o trabajo lleva {for_ms} {verdict}. Tras {limit_ms} así, puede pasar a quien espere.",
    ),
    "lease_watched": (
        "Held: {what}. The notebook or job is {verdict}, and nothing is taken for that.",
        "Se tiene: {what}. El cuaderno o trabajo está {verdict}, y nada se retira por eso.",
    ),
    "lease_unseen": (
        "Held: {what}. What the notebook or job does cannot be seen now, so nothing is taken.",
        "Se tiene: {what}. Ahora no se ve qué hace el cuaderno o trabajo, así que nada se retira.",
    ),
    "lease_leaving": (
        "Let go of: {what}. It is being checked, and handed on when nobody is left there.",
        "Se soltó: {what}. Se está comprobando, y se entregará cuando no quede nadie ahí.",
    ),
    "lease_giving_back": (
        "Being given back by {kind}: {what}.",
        "Se está devolviendo ({kind}): {what}.",
    ),
    "lease_kept": ("It is kept for {left_ms} more.", "Se conserva {left_ms} más."),
    "lease_parked": (
        "Parked: {what}. The contents wait in host memory; `%gpu unpark` brings them back.",
        "Se aparcó: {what}. El contenido espera en la memoria del equipo; `%gpu unpark` lo recupera.",
    ),
    "lease_over": ("Given back: {what}.", "Se devolvió: {what}."),
    "lease_over_by": ("Given back by {kind}: {what}.", "Se devolvió ({kind}): {what}."),
    "verdict": ("The notebook or job is {verdict}.", "El cuaderno o trabajo está {verdict}."),
    "acknowledged": (
        "The process confirmed that it has the GPU.",
        "El proceso confirmó que tiene la GPU.",
    ),
    "resumed": ("What was parked is back on the GPU.", "Lo aparcado está de nuevo en la GPU."),
    # --- notice and keep -----------------------------------------------------------------------------------------------
    "lease_noticed": (
        (
            "The GPU goes back in {due_ms}, since its notebook or job has been {verdict} for {for_ms} and "
            "somebody waits for it. "
            "`%gpu keep` holds on to it, `%gpu release` gives it back now."
        ),
        (
            "La GPU se devolverá en {due_ms}, pues su cuaderno o trabajo lleva {for_ms} {verdict} y alguien la espera. "
            "`%gpu keep` la conserva, `%gpu release` la devuelve ya."
        ),
    ),
    "lease_ending": (
        "The GPU goes back in {due_ms}, since the time it was asked for is over then. `%gpu keep` prolongs it.",
        "La GPU se devolverá en {due_ms}, pues entonces acaba el tiempo por el que se pidió. `%gpu keep` lo prolonga.",
    ),
    "idle_and_wanted": (
        "This notebook has been {verdict} for {idle_ms}, and somebody waits for its GPU.",
        "Este cuaderno lleva {idle_ms} {verdict}, y alguien espera su GPU.",
    ),
    "taken": (
        "Its notebook or job had been {verdict} for {idle_ms}, and somebody waited for the GPU.",
        "Su cuaderno o trabajo llevaba {idle_ms} {verdict}, y alguien esperaba la GPU.",
    ),
    "time_was_over": (
        "The time that the GPU was asked for was over.",
        "Se acabó el tiempo por el que se pidió la GPU.",
    ),
    "time_over": (
        "The time that the GPU was asked for is over in {in_ms}. `%gpu keep` prolongs it.",
        "El tiempo por el que se pidió la GPU acaba en {in_ms}. `%gpu keep` lo prolonga.",
    ),
    "notice_shown": ("The notice was shown.", "El aviso se mostró."),
    "notice_not_seen": (
        "Nobody can have seen the notice, so its countdown runs twice as long.",
        "Nadie pudo ver el aviso, así que su cuenta atrás dura el doble.",
    ),
    "notice_reassigned": (
        "The GPU is wanted by another request now.",
        "Ahora es otra petición la que espera la GPU.",
    ),
    "notice_withdrawn": (
        "The notice was withdrawn, since {why}.",
        "El aviso se retiró, pues {why}.",
    ),
    "samples_stale": (
        "The notice was withdrawn, since the GPU could not be watched to the end.",
        "El aviso se retiró, pues la GPU no pudo observarse hasta el final.",
    ),
    "only_advised": (
        "The GPU would have gone back now; at present the broker only advises.",
        "La GPU se habría devuelto ahora; por ahora el broker solo aconseja.",
    ),
    "only_observed": (
        (
            "The GPU would have gone to somebody who waits, since its notebook or job had been {verdict} for {idle_ms}; "
            "at present the broker only observes."
        ),
        (
            "La GPU habría pasado a quien la espera, pues su cuaderno o trabajo llevaba {idle_ms} {verdict}; "
            "por ahora el broker solo observa."
        ),
    ),
    "kept": (
        "The GPU is kept for {keep_ms} more. Keeps left until it is used again: {keeps_left}.",
        "La GPU se conserva {keep_ms} más. Conservaciones que quedan hasta que se use de nuevo: {keeps_left}.",
    ),
    "no_keeps_left": (
        "The GPU was kept {keeps_max} times without work in between, and no more is possible. Use it, or release it.",
        "La GPU se conservó {keeps_max} veces sin trabajo entretanto, y ya no es posible más. Úsela, o libérela.",
    ),
    "policy_rules": (
        (
            "Only if somebody waits for it, a GPU may go after {idle_ms} idle or at a prompt, after {unused_ms} without "
            "any use, and after {elsewhere_ms} of code that does not use it. The notice before is {notice_ms}; keeping holds "
            "on to it for {keep_ms}, up to {keeps_max} times in a row."
        ),
        (
            "Solo si alguien la espera, una GPU puede retirarse tras {idle_ms} inactiva o en un punto de entrada, tras "
            "{unused_ms} sin ningún uso, y tras {elsewhere_ms} de código que no la usa. El aviso previo es de {notice_ms}; "
            "conservarla vale por {keep_ms}, hasta {keeps_max} veces seguidas."
        ),
    ),
    "never_taken": (
        "This GPU is not taken back for idleness, so there is nothing to keep.",
        "Esta GPU no se retira por inactividad, así que no hay nada que conservar.",
    ),
    # --- ends ----------------------------------------------------------------------------------------------------------
    "released": ("The GPU was released.", "La GPU se liberó."),
    "not_acknowledged": (
        "The process did not confirm within {after_ms} that it has the GPU, so it was taken back. Ask again.",
        "El proceso no confirmó en {after_ms} que tiene la GPU, así que se retiró. Pídala de nuevo.",
    ),
    "grant_over": (
        "This GPU is not yours any more: the grant was not confirmed in time, or was given back. Ask again.",
        "Esta GPU ya no es suya: la concesión no se confirmó a tiempo, o se devolvió. Pídala de nuevo.",
    ),
    "answer_the_order": (
        "What was parked must come back first. Answer the order instead.",
        "Lo aparcado debe volver primero. Responda a la orden.",
    ),
    "not_active": (
        "There is no GPU in use under this lease. `%gpu` shows what you hold.",
        "No hay ninguna GPU en uso en esta concesión. `%gpu` muestra lo que tiene.",
    ),
    "not_parked": (
        "Nothing is parked under this lease. `%gpu` shows what you hold.",
        "No hay nada aparcado en esta concesión. `%gpu` muestra lo que tiene.",
    ),
    "no_such_lease": (
        "There is no such lease of yours. `gpubroker status` lists them.",
        "No hay tal concesión suya. `gpubroker status` las enumera.",
    ),
}
