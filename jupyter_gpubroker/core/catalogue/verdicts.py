"""What a verdict rests on, by the rule that gave it (`verdicts.RULES`); and what became of sick GPUs."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    "rule_host_alone": (
        (
            "The GPU has no counter that could be read. Its holder has waited at a prompt or breakpoint for {spell_ms}, and "
            "none of its processes has worked on the host for {host_quiet_ms}; by this site's rules that counts as waiting."
        ),
        (
            "La GPU no tiene ningún contador legible. Su titular lleva {spell_ms} esperando en un punto de entrada o de "
            "parada, y ninguno de sus procesos ha trabajado en el equipo desde hace {host_quiet_ms}; según las reglas de este "
            "sitio, eso cuenta como espera."
        ),
    ),
    "rule_out_of_sight": (
        "Whether the GPU is in use cannot be read, for {blind_ms} now. What cannot be seen is left alone.",
        "No se puede leer si la GPU está en uso, desde hace {blind_ms}. Lo que no se ve no se toca.",
    ),
    "rule_missed": (
        "The last reading of the GPU told nothing. Until the next that does, no time counts.",
        "La última lectura de la GPU no dijo nada. Hasta la próxima que diga algo, no cuenta el tiempo.",
    ),
    "rule_spins": (
        (
            "The GPU has been busy for {spinning_ms} without moving data or drawing more power than an idle one: a process "
            "seems to wait in a loop, for another one perhaps. Nothing is taken for that; look whether it hangs."
        ),
        (
            "La GPU lleva {spinning_ms} ocupada sin mover datos ni consumir más que una inactiva: un proceso parece esperar en "
            "un bucle, quizá a otro. Nada se retira por ello; compruebe si está bloqueado."
        ),
    ),
    "rule_uses_it": (
        "Its processes used the GPU when it was last read.",
        "Sus procesos usaban la GPU en la última lectura.",
    ),
    "rule_used_it_just_now": (
        "Its processes used the GPU {quiet_ms} ago; a pause counts from {settle_ms} on.",
        "Sus procesos usaron la GPU hace {quiet_ms}; una pausa cuenta a partir de {settle_ms}.",
    ),
    "rule_serves": (
        (
            "A process of it waits for connections, and has used the GPU {bursts} times without anybody running anything, "
            "last {quiet_ms} ago."
        ),
        (
            "Un proceso suyo espera conexiones y ha usado la GPU {bursts} veces sin que nadie ejecutara nada, "
            "la última hace {quiet_ms}."
        ),
    ),
    "rule_kernel_unseen": (
        "The GPU is quiet, but what the kernel does cannot be seen. What cannot be seen is left alone.",
        "La GPU está en reposo, pero no se ve qué hace el kernel. Lo que no se ve no se toca.",
    ),
    "rule_cell_runs": (
        "A cell has been running for {spell_ms}, and the GPU has been quiet for {quiet_ms}.",
        "Una celda lleva {spell_ms} ejecutándose, y la GPU lleva {quiet_ms} en reposo.",
    ),
    "rule_host_works": (
        "No cell runs, but processes of it work on the host. The GPU has been quiet for {quiet_ms}.",
        "No se ejecuta ninguna celda, pero hay procesos suyos trabajando en el equipo. La GPU lleva {quiet_ms} en reposo.",
    ),
    "rule_at_a_prompt": (
        "It has been {activity} for {spell_ms}, and the GPU has been quiet for {quiet_ms}.",
        "Lleva {spell_ms} {activity}, y la GPU lleva {quiet_ms} en reposo.",
    ),
    "rule_no_use_yet": (
        "No process of it has been on the GPU yet, and nothing has run for {spell_ms}.",
        "Ningún proceso suyo ha estado aún en la GPU, y no se ha ejecutado nada desde hace {spell_ms}.",
    ),
    "rule_at_rest": (
        "Nothing has run for {spell_ms}, and the GPU has been quiet for {quiet_ms}.",
        "No se ha ejecutado nada desde hace {spell_ms}, y la GPU lleva {quiet_ms} en reposo.",
    ),
    # --- health --------------------------------------------------------------------------------------------------------
    "gpu_sick": (
        "The GPU reported {error}, so nobody new is let on it. Save your work and release it; {remedy}.",
        "La GPU comunicó {error}, así que no se concede a nadie más. Guarde su trabajo y libérela; {remedy}.",
    ),
    "program_fault": (
        "The GPU stopped a program of yours ({error}): most often it wrote where it must not. Restart the kernel to go on.",
        "La GPU detuvo un programa suyo ({error}): lo más frecuente es que escribiera donde no debía. Reinicie el kernel.",
    ),
    "gpu_on_probation": (
        "The GPU asks for no help any more. It is trusted again when nothing new is seen for {probation_ms}.",
        "La GPU ya no pide ayuda. Se volverá a confiar en ella cuando no se vea nada nuevo durante {probation_ms}.",
    ),
    "gpu_well": (
        "Nothing new was seen of the GPU for {probation_ms}, so it is trusted again.",
        "No se vio nada nuevo de la GPU durante {probation_ms}, así que se vuelve a confiar en ella.",
    ),
    "slot_renewed": (
        "The GPU was partitioned anew, and this part is another one now. What was on it is gone; ask for a GPU again.",
        "La GPU se volvió a dividir, y esta parte es ahora otra. Lo que contenía se perdió; pida una GPU de nuevo.",
    ),
}
