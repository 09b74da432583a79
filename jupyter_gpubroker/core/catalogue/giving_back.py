"""Giving slots back: carried out, failed, and why a kind would not work for a process."""

from __future__ import annotations

SENTENCES: dict[str, tuple[str, str]] = {
    "gave_back": ("Given back by {kind}.", "Se devolvió: {kind}."),
    "holder_cannot_give_back": (
        (
            "The GPU stays where it is: no way to give it back works for the process that holds it now. `%gpu "
            "why` lists the reasons."
        ),
        (
            "La GPU sigue donde está: ahora ninguna forma de devolverla funciona en el proceso que la tiene. "
            "`%gpu why` da los motivos."
        ),
    ),
    "give_back_failed": (
        "The process could not give it back.",
        "El proceso no pudo devolverla.",
    ),
    "not_clear_in_time": (
        "After {kind} the GPU did not come free in time.",
        "Tras {kind}, la GPU no quedó libre a tiempo.",
    ),
    "still_giving_back": (
        "An earlier attempt at {kind} may not be over yet; nothing else is tried before it is.",
        "Un intento anterior de {kind} quizá no haya terminado; no se intenta otra cosa hasta que termine.",
    ),
    "answered_late": (
        "The attempt at {kind} came to its end after its time; it is undone.",
        "El intento de {kind} terminó después de su plazo; se deshace.",
    ),
    "order_overdue": (
        "The process did not answer in time, when asked to free the GPU by {kind}.",
        "El proceso no respondió a tiempo cuando se le pidió liberar la GPU: {kind}.",
    ),
    "no_such_order": (
        "There is no such order. Look at the lease again.",
        "No existe tal orden. Consulte de nuevo la concesión.",
    ),
    "resume_failed": (
        "What was parked could not be brought back. It is still in host memory; `%gpu unpark` tries again.",
        "Lo aparcado no pudo recuperarse. Sigue en la memoria del equipo; `%gpu unpark` lo intenta de nuevo.",
    ),
    "resume_overdue": (
        "What was parked did not come back within {after_ms}. It is still in host memory; `%gpu unpark` tries again.",
        "Lo aparcado no volvió en {after_ms}. Sigue en la memoria del equipo; `%gpu unpark` lo intenta de nuevo.",
    ),
    # --- why a kind would not work now ---------------------------------------------------------------------------------
    "not_offered": (
        "The process does not offer {kind}.",
        "El proceso no ofrece {kind}.",
    ),
    "context_on_slot": (
        "The process is on the GPU, which only its end or a suspension undoes.",
        "El proceso está en la GPU, y solo su fin o una suspensión lo deshacen.",
    ),
    "context_alive": (
        "The process has initialised CUDA, and only its end or a suspension undoes that.",
        "El proceso inicializó CUDA, y solo su fin o una suspensión lo deshacen.",
    ),
    "cell_running": (
        "A cell is running. It works when the cell has ended.",
        "Hay una celda en ejecución. Funcionará cuando termine.",
    ),
    "no_consent": (
        "A restart of the kernel needs its owner's consent. `%gpu release` asks for it.",
        "Reiniciar el kernel requiere el consentimiento de su titular. `%gpu release` lo pide.",
    ),
    "nothing_to_park": (
        "There is nothing on the GPU to park.",
        "No hay nada en la GPU que aparcar.",
    ),
    "no_parker": (
        "Nothing here can move the memory of the GPU to the host. Register callbacks, or install the extra `park`.",
        "Nada puede pasar aquí la memoria de la GPU al equipo. Registre funciones, o instale el extra `park`.",
    ),
    "library_not_covered": (
        "{library} uses the GPU and nothing moves its memory. Register callbacks for it.",
        "{library} usa la GPU y nada mueve su memoria. Registre funciones para ella.",
    ),
    "callback_late": (
        "A registered callback has not come back yet.",
        "Una función registrada aún no ha terminado.",
    ),
    "callback_failed": (
        "A registered callback failed: {error}.",
        "Una función registrada falló: {error}.",
    ),
    "contents_changed": (
        "The contents differ from what was parked, so they are not trusted.",
        "El contenido difiere de lo que se aparcó, así que no se da por bueno.",
    ),
    "gpu_busy": ("The GPU is busy.", "La GPU está ocupada."),
    "gpu_memory_short": (
        "The GPU has too little free memory to bring everything back.",
        "La GPU tiene muy poca memoria libre para recuperarlo todo.",
    ),
    "cuda_unusable": (
        "CUDA cannot be used in this process any more. Restart the kernel.",
        "CUDA ya no puede usarse en este proceso. Reinicie el kernel.",
    ),
    "threads_use_gpu": ("The thread {thread} uses the GPU.", "El hilo {thread} usa la GPU."),
    "park_failed": ("Parking failed: {error}.", "No se pudo aparcar: {error}."),
    "unpark_failed": ("Bringing it back failed: {error}.", "No se pudo recuperar: {error}."),
    "park_expandable_segments": (
        "PyTorch's expandable segments cannot be parked. Start without that setting.",
        "Los segmentos expandibles de PyTorch no pueden aparcarse. Arranque sin ese ajuste.",
    ),
    "park_not_preloaded": (
        "The kernel was started without what parking needs. Restart it.",
        "El kernel arrancó sin lo necesario para aparcar. Reinícielo.",
    ),
    "save_failed": (
        "What should survive the restart could not be saved: {error}.",
        "No se pudo guardar lo que debía sobrevivir al reinicio: {error}.",
    ),
    "save_not_seen": (
        "The kernel did not report that its contents were saved, so it was not restarted.",
        "El kernel no confirmó haber guardado su contenido, así que no se reinició.",
    ),
    "host_memory_short": (
        "The host has too little free memory for it: {free_mib}.",
        "El equipo tiene muy poca memoria libre para ello: {free_mib}.",
    ),
    "cgroup_memory_short": (
        "The memory limit of this session leaves too little for it: {free_mib}.",
        "El límite de memoria de esta sesión deja muy poca para ello: {free_mib}.",
    ),
    "slot_memory_short": (
        "The GPU has too little free memory to bring everything back.",
        "La GPU tiene muy poca memoria libre para recuperarlo todo.",
    ),
    "memory_unknown": (
        "How much memory the process uses on the GPU is not known.",
        "No se sabe cuánta memoria de la GPU usa el proceso.",
    ),
    "not_running": (
        "The process is {state}, not running.",
        "El proceso está en estado {state}, no en marcha.",
    ),
    "unexpected_state": (
        "The driver left the process in the state {state}.",
        "El controlador dejó el proceso en el estado {state}.",
    ),
    "other_uid": ("The process belongs to another user.", "El proceso es de otra persona."),
    "no_context": ("The process is not on this GPU.", "El proceso no está en esta GPU."),
    "mig_slot": (
        "The driver cannot suspend a process on a slice.",
        "El controlador no puede suspender un proceso en una porción.",
    ),
    "several_gpus": (
        "The driver can suspend a process on one GPU only; it uses {gpus}.",
        "El controlador solo puede suspender un proceso en una GPU; usa {gpus}.",
    ),
    "uvm_memory": (
        "The process uses managed memory, which the driver cannot suspend.",
        "El proceso usa memoria gestionada, que el controlador no puede suspender.",
    ),
    "mps_client": (
        "The process is a client of MPS, which the driver cannot suspend.",
        "El proceso es cliente de MPS, que el controlador no puede suspender.",
    ),
    "nccl_in_use": (
        "The process uses NCCL, which the driver cannot suspend.",
        "El proceso usa NCCL, que el controlador no puede suspender.",
    ),
    "child_has_context": (
        "Its child {pid} is on the GPU too, and only one process can be suspended.",
        "Su proceso hijo {pid} también está en la GPU, y solo puede suspenderse uno.",
    ),
    "driver_too_old": (
        "The driver {major} is too old to suspend processes; {major_min} is needed.",
        "El controlador {major} es muy antiguo para suspender procesos; hace falta {major_min}.",
    ),
    "driver_missing": ("The CUDA driver is not there.", "No está el controlador de CUDA."),
    "bindings_missing": (
        "The package cuda-bindings is missing. Install the extra `checkpoint`.",
        "Falta el paquete cuda-bindings. Instale el extra `checkpoint`.",
    ),
    "not_supported": ("The driver does not support it here.", "El controlador no lo admite aquí."),
    "driver_error": ("The driver refused.", "El controlador se negó."),
    "out_of_memory": (
        "The GPU has too little free memory.",
        "La GPU tiene muy poca memoria libre.",
    ),
    "busy": (
        "The process is still working on the GPU; it can be suspended when that work is done.",
        "El proceso aún trabaja en la GPU; podrá suspenderse cuando termine.",
    ),
    "gone": ("The process is gone.", "El proceso ya no existe."),
    "illegal_state": (
        "The process was not in a state that allows it.",
        "El proceso no estaba en un estado que lo permita.",
    ),
    "unverified_hardware": (
        "It has not been seen to work on this machine's GPUs yet, so it is off.",
        "Aún no se ha visto funcionar en las GPU de esta máquina, así que está desactivado.",
    ),
    "checkpoint_helper_failed": (
        "The helper that talks to the driver failed: {error}.",
        "El auxiliar que habla con el controlador falló: {error}.",
    ),
}
