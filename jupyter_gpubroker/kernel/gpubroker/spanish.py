"""Every sentence of this package in Spanish; `english` has the same codes."""

from __future__ import annotations

SPANISH = {
    # --- Nobody to ask --------------------------------------------------------------------------
    "not_managed": (
        "Este proceso no toma GPU prestadas: no lo inició ningún gestor de GPU. Ve los "
        "dispositivos que su entorno muestra; abra el cuaderno en un servidor Jupyter con "
        "jupyter_gpubroker para tomarlas."
    ),
    "switched_off": (
        "El gestor de GPU está desactivado aquí (GPUBROKER=off). Para activarlo en kernels nuevos: "
        "`gpubroker on` en una terminal; y si el servidor Jupyter se inició con GPUBROKER=off, "
        "quite esa variable (`unset GPUBROKER`) e inicie el servidor de nuevo."
    ),
    "inherited": (
        "Este kernel conserva los dispositivos del trabajo en que corre; el gestor de GPU no los "
        "toca."
    ),
    "child_process": (
        "Este proceso lo inició un kernel y usa la GPU de ese kernel; pida una en el propio "
        "cuaderno."
    ),
    "no_broker": (
        "El gestor de GPU no responde; el cuaderno sigue sin él. Inténtelo en un momento, o vea "
        "`%gpu doctor`."
    ),
    "broker_silent": (
        "El gestor de GPU tarda demasiado; no cuenta como cambiado nada que no haya confirmado. "
        "Inténtelo en un momento."
    ),
    "broker_unreadable": (
        "Lo que respondió no es un gestor de GPU de esta versión; reinicie el kernel tras "
        "actualizar, o vea `%gpu doctor`."
    ),
    "broker_not_trusted": (
        "Lo que responde como gestor de GPU corre como usuario {uid}, pero su carpeta es del "
        "usuario {owner} o está abierta a otros; no se envió nada."
    ),
    "bad_url": (
        "GPUBROKER_URL debe ser unix:///ruta/de/broker.sock; reinicie el kernel desde un servidor "
        "que la fije."
    ),
    "not_registered": "El gestor de GPU aún no conoce este kernel; inténtelo en un momento.",
    # --- What users type ------------------------------------------------------------------------
    "duration_without_unit": "{text!r} no tiene unidad; escriba un número con su unidad, por ejemplo 90s, 10m o 1h30m.",
    "bad_duration": (
        "{text!r} no es una duración entre 1s y 366d; escriba un número con su unidad, por "
        "ejemplo 90s, 10m o 1h30m."
    ),
    "memory_without_unit": "{text!r} no tiene unidad; escriba un tamaño con su unidad, por ejemplo 20G o 512M.",
    "bad_memory": (
        "{text!r} no es un tamaño entre 1M y 16T; escriba uno con su unidad, por ejemplo 20G o "
        "512M."
    ),
    "bad_count": "{text!r} no es un número de GPU; escriba un entero de 1 a {most}.",
    "bad_slice": (
        "{text!r} no es el nombre de una porción; escriba una como 1g.18gb, o pida por memoria: "
        "--memory 20G."
    ),
    "slice_or_memory": "Una porción ya tiene su memoria; dé --slice o --memory, no ambas.",
    "wait_or_not": "Dé --wait o --no-wait, no ambas.",
    "one_kind": "Una GPU vuelve de una sola manera; dé una de --park, --checkpoint y --restart.",
    "yes_or_no": "{text!r} no es ni yes ni no; escriba --restart yes o --restart no.",
    "open_quote": "Falta cerrar una comilla; ciérrela y ejecute la celda otra vez.",
    "unknown_verb": "`%gpu {text}` no existe; {nearest}",
    "unknown_option": "La opción {text} no existe aquí; {nearest}",
    "option_twice": "{name} aparece dos veces; déla una vez.",
    "option_without_value": "{name} no lleva valor; quite el valor.",
    "value_missing": "{name} necesita un valor; vea `%gpu help`.",
    "too_many_words": "{text!r} está de más; vea `%gpu help`.",
    "did_you_mean": "¿quiso decir {text}?",
    "see_help": "vea `%gpu help`.",
    # --- CUDA_VISIBLE_DEVICES -------------------------------------------------------------------
    "variable_unreadable": (
        "CUDA_VISIBLE_DEVICES={text} no se fijó: no nombra ningún dispositivo por número o UUID. "
        "`%gpu request` consigue una GPU."
    ),
    "variable_slice": (
        "CUDA_VISIBLE_DEVICES no se fijó: esa porción no está prestada a este kernel. `%gpu "
        "request --slice 1g.18gb` pide una."
    ),
    "variable_foreign": (
        "CUDA_VISIBLE_DEVICES queda como estaba: {text} no es de las {count} prestadas a este "
        "kernel, que se cuentan desde 0."
    ),
    "variable_hint": (
        "CUDA_VISIBLE_DEVICES no se fijó: aún no hay GPU prestada a este kernel. `%gpu request "
        "{count}` pide lo que nombra."
    ),
    "variable_unset": "CUDA_VISIBLE_DEVICES no se fijó; la celda sigue sin GPU.",
    # --- Getting a GPU --------------------------------------------------------------------------
    "goal_gpu": "una GPU",
    "goal_return": "el regreso de su GPU",
    "wait_place": "Esperando {goal}: puesto {place} de {waiting}.",
    "wait_expected": "Se espera en unos {left}.",
    "wait_unknown": "Aún sin estimación.",
    "wait_waited": "Espera: {time}.",
    "wait_interrupt": "Interrumpa la celda para dejar la cola.",
    "return_in_cell": "Una celda que empieza con `%%gpu cpu` corre sin ella; interrumpa esta para cambiarla.",
    "return_at_debugger": (
        "`%gpu cpu EXPRESIÓN` en el prompt funciona sin ella; interrumpa para volver al prompt."
    ),
    "return_at_input": "Interrumpa para volver al prompt.",
    "return_at_breakpoint": "El depurador sigue cuando esté de vuelta.",
    "wait_broker_away": "Sigue en espera; el gestor no está en este momento. {sentence}",
    "wait_over": "Esperó {time} por {goal}.",
    "interrupted": "Interrumpido; `%gpu` muestra cómo está todo.",
    "left_line": "Ha dejado la cola; ya no se espera nada. `%gpu request` pide otra vez.",
    "granted": "{what} es suya.",
    "granted_many": "{what} son suyas.",
    "granted_open": (
        "Es suya mientras trabaja; si queda ociosa y otros esperan, se le avisa antes de que "
        "vuelva."
    ),
    "granted_open_many": (
        "Son suyas mientras trabaja; si quedan ociosas y otros esperan, se le avisa antes de que "
        "vuelvan."
    ),
    "granted_until": "Vuelve a más tardar en {left}.",
    "granted_until_many": "Vuelven a más tardar en {left}.",
    "held_already": "Ya tiene {what}; `%gpu release` la devuelve.",
    "held_fewer": "Tiene {what}, menos de lo que pide; `%gpu release` la devuelve, luego pida otra vez.",
    "going_back_now": "Su última GPU se está devolviendo; pida otra vez en un momento.",
    "cuda_blind": (
        "{library} buscó una GPU en este proceso antes de tenerla, y CUDA mira una sola vez. Su "
        "préstamo se conserva: `%gpu restart` (o Kernel > Reiniciar) inicia el kernel de nuevo "
        "con ella."
    ),
    "cuda_unsure": (
        "{library} cargó el controlador CUDA antes de que este proceso tuviera GPU. Si ahora no "
        "se ve la GPU, `%gpu restart` conserva su préstamo e inicia el kernel de nuevo con ella."
    ),
    "first_use_asks": "{library} usa GPU: se pide una antes de importarla.",
    "first_use_cpu": (
        "{library} se importa sin GPU y corre en la CPU; `%gpu request` antes de que busque una la "
        "consigue."
    ),
    "first_use_hint": "{library} se importa sin GPU; `%gpu request` antes del primer uso consigue una.",
    # --- Holding one and giving it back ---------------------------------------------------------
    "no_lease": "Este kernel no tiene GPU; `%gpu request` pide una.",
    "way_back": "La forma en que vuelve: {kind}.",
    "slots_free": "{free} de {slots} están libres.",
    "waiting_request": "En espera: {sentence}",
    "kept": "Se conserva por {time}.",
    "released": "{what} fue devuelta.",
    "parked_release": (
        "Su GPU está aparcada: su memoria espera en el host. `%gpu unpark` la recupera; `%gpu "
        "release --restart` la abandona."
    ),
    "parked_already": "Su GPU ya está aparcada; `%gpu unpark` la recupera.",
    "not_parked": "No hay nada aparcado.",
    "is_back": "{what} está de vuelta, con su memoria como estaba.",
    "context_alive_release": (
        "CUDA retiene la GPU hasta que este proceso termine o se suspenda, así que no puede "
        "volver sin más. Lo que se puede hacer:"
    ),
    "choice_parked": "`%gpu release --park`: su memoria pasa al host y vuelve antes de su próxima celda",
    "choice_checkpointed": (
        "`%gpu release --checkpoint`: el controlador la suspende y la recupera antes de su "
        "próxima celda"
    ),
    "choice_restarted": (
        "`%gpu release --restart`: el kernel se reinicia sin GPU; se guardan las variables que se "
        "pueda"
    ),
    "no_choice": "No es posible ({kind}): {why}.",
    "ask_choice": "¿Aparcar, suspender, reiniciar o nada? [p/c/r/N] ",
    "ask_restart": "¿Reiniciar ahora? [y/N] ",
    "nothing_done": "No se hizo nada; la GPU sigue siendo suya.",
    "not_given_back": "La GPU sigue siendo suya por ahora: devolverla tardó demasiado. `%gpu why` dice más.",
    "kind_empty": "enseguida",
    "kind_parked": "aparcada, su memoria espera en el host",
    "kind_checkpointed": "suspendida por el controlador",
    "kind_restarted": "reiniciando el kernel",
    "kind_kept": "ninguna sirve ahora para este proceso, así que se queda",
    "simulated": "simulada",
    # --- Notices, and GPUs that are away --------------------------------------------------------
    "notice_due": "Su GPU se devolverá en {left} ({kind}).",
    "notice_due_many": "Sus GPU se devolverán en {left} ({kind}).",
    "notice_due_unsure": "Su GPU se pedirá en {left}; tal como está no se puede tomar sin daño y se quedaría.",
    "keep_in_cell": "`%gpu keep` la conserva.",
    "keep_at_debugger": "`%gpu keep` la conserva, escrito en este prompt.",
    "keep_at_input": "Para conservarla, responda al prompt.",
    "keep_at_breakpoint": "Para conservarla, avance o continúe en el depurador.",
    "notice_over": "La GPU sigue siendo suya.",
    "notice_kept": "La GPU sigue siendo suya; se conserva por {time}.",
    "gone_back": "Su GPU ociosa pasó a quien esperaba; `%gpu request` pide una otra vez.",
    "gone_parked": (
        "Su GPU ociosa pasó a quien esperaba; su memoria espera en el host, y vuelve antes de que "
        "corra su próxima celda."
    ),
    "notice_past": "Su GPU pasó a quien esperaba.",
    "notice_returned": "Su GPU está de vuelta, tal como la dejó.",
    "lease_over": "Su préstamo de GPU terminó; `%gpu why` dice por qué, `%gpu request` pide una otra vez.",
    "still_away": (
        "Interrumpido: su GPU sigue aparcada, así que el código no se ejecutó. Ejecútelo otra vez "
        "para esperarla, o con `%%gpu cpu` como primera línea para ejecutarlo sin ella."
    ),
    "still_leaving": "Su GPU se está devolviendo; se espera a que termine.",
    "still_returning": (
        "Su GPU fue concedida otra vez, pero su memoria aún no ha vuelto. Ejecute la celda otra "
        "vez en un momento."
    ),
    "parked_lease_gone": (
        "El préstamo de su GPU aparcada terminó, así que su memoria no puede volver. Lo que había "
        "en la GPU se perdió; guarde el resto y reinicie el kernel."
    ),
    "silent_code_held": (
        "Su GPU está aparcada; el código que la interfaz ejecuta por su cuenta espera a su "
        "próxima celda."
    ),
    "debugger_waits": "Su GPU está aparcada y se espera; pulse el botón otra vez cuando vuelva.",
    # --- Reasons found in this process ----------------------------------------------------------
    "reason_unverified_hardware": "aún no se ha visto funcionar con las GPU de esta máquina",
    "reason_nothing_to_park": "nada de este proceso está en la GPU",
    "reason_no_parker": (
        "nadie sabe mover la memoria de GPU de este proceso; registre @gpubroker.on_park y "
        "@gpubroker.on_unpark"
    ),
    "reason_library_not_covered": (
        "la memoria de GPU de {library} no se puede mover; registre @gpubroker.on_park y "
        "@gpubroker.on_unpark"
    ),
    "reason_park_not_preloaded": "torch-memory-saver no se cargó al iniciar el kernel; instale el extra `park` y actívelo",
    "reason_park_expandable_segments": (
        "PyTorch mapea su memoria por sí mismo (expandable_segments), así que no se puede mover; "
        "quítelo y reinicie"
    ),
    "reason_threads_use_gpu": "el hilo {thread} puede usar la GPU en segundo plano",
    "reason_host_memory_short": "el host tiene {free_mib} MiB libres y se necesitan {wanted_mib} MiB",
    "reason_gpu_busy": "hay trabajo en la GPU",
    "reason_gpu_memory_short": "la GPU aún no tiene memoria libre suficiente",
    "reason_cuda_unusable": "CUDA está inservible en este proceso; reinicie el kernel",
    "reason_cell_running": "se está ejecutando una celda",
    "reason_callback_late": "una función registrada con on_park u on_unpark no terminó a tiempo",
    "reason_callback_failed": "una función registrada con on_park u on_unpark falló ({error})",
    "reason_park_failed": "falló mover la memoria ({error})",
    "reason_unpark_failed": "falló recuperar la memoria ({error})",
    "reason_contents_changed": (
        "La memoria de GPU no volvió como salió: las sumas de control difieren. No se fíe de lo "
        "que hay en ella; recargue sus datos."
    ),
    "reason_nccl_in_use": "el proceso usa NCCL, que el controlador no puede suspender",
    "reason_context_alive": "CUDA retiene la GPU",
    "reason_no_consent": "no ha aceptado un reinicio",
    "reason_not_offered": "no se ofrece por ahora",
    # --- Restarts -------------------------------------------------------------------------------
    "restart_keeps": "Un reinicio conserva: {names}.",
    "restart_keeps_none": "Un reinicio no conserva variables.",
    "restart_loses": "Pierde {name} ({why}).",
    "restart_loses_always": "Lo que corre en este momento, hilos y archivos abiertos se pierden.",
    "consents": (
        "Acepta que una GPU ociosa se retire reiniciando este kernel; `%gpu policy --restart no` "
        "lo revoca."
    ),
    "consents_not": (
        "Este kernel no se reinicia para retirar una GPU ociosa; `%gpu policy --restart yes` lo "
        "permite."
    ),
    "restarting": "Reiniciando el kernel; su préstamo se conserva.",
    "restarting_without": (
        "El kernel se reinicia sin GPU. Lo que se pudo guardar vuelve con `%gpu restore`."
    ),
    "restarting_cell": (
        "Esta celda terminó: como usted aceptó, el kernel se reinicia para dar su GPU ociosa a "
        "quien espera. Lo que se pudo guardar vuelve con `%gpu restore`."
    ),
    "gpu_away": (
        "Esto usaría la GPU, y `%gpu cpu` mantiene este código fuera de ella. Sin él, el código "
        "espera a que la GPU vuelva."
    ),
    "saving_away": "está en la GPU, que está aparcada",
    "restart_by_hand": "Ningún servidor Jupyter vigila este kernel; reinícielo a mano.",
    "restore_ready": "Sus variables se guardaron antes del reinicio; `%gpu restore` las recupera.",
    "restored": "Recuperado: {names}. Todo está en la CPU; `%gpu request` pide una GPU.",
    "not_restored": "No guardado: {name} ({why}).",
    "nothing_to_restore": "No se guardó nada para este kernel.",
    "restore_failed": "Lo guardado no se puede leer aquí ({error}); está en {folder}.",
    "restore_cell_head": "Guardado antes de reiniciar el kernel: {names}",
    "restore_cell_lost": "No guardado: {name} ({why})",
    "defined_here": "{name} está definido en el cuaderno; instale cloudpickle para guardarlo",
    "folder_not_private": (
        "{folder} está abierta a otros, así que no se guarda ni se carga nada de ella; ciérrela: "
        "chmod 700."
    ),
    # --- Questions ------------------------------------------------------------------------------
    "ended_ago": "{sentence} (hace {time})",
    "numbers": "En cifras: {numbers}.",
    "number_place": "puesto {value} en la cola",
    "number_waited_ms": "espera de {value}",
    "number_expected_in_ms": "se espera en {value}",
    "number_held_for_ms": "en uso desde hace {value}",
    "number_verdict_for_ms": "así desde hace {value}",
    "number_limit_ms": "puede retirarse tras {value} así",
    "number_kept_for_ms": "se conserva {value} más",
    "number_keeps_left": "{value} prórrogas más",
    "nothing_to_explain": "Este kernel no tiene GPU ni ha pedido ninguna.",
    "line_empty": "Nadie espera.",
    "line_entry": "{place}. {whose} {what}, espera {waited}",
    "line_mine": "usted:",
    "line_other": "alguien:",
    "policy": "Se aplican las reglas `{name}`: {sentence}",
    "policy_none": "Ninguna regla retira la GPU de este kernel por estar ociosa.",
    "policy_keeps": "Quedan {count} prórrogas.",
    # --- Checks ---------------------------------------------------------------------------------
    "check_managed": "Este kernel toma sus GPU prestadas del gestor.",
    "check_broker": "El gestor responde; su versión es {version}. {sentence}",
    "check_devices": "El gestor ve las GPU.",
    "check_devices_simulated": "El gestor ve GPU simuladas.",
    "check_session": "El gestor conoce este kernel.",
    "check_link": "El hilo que escucha al gestor vive.",
    "check_link_dead": "El hilo que escucha al gestor terminó; reinicie el kernel.",
    "check_variable": "CUDA_VISIBLE_DEVICES muestra lo prestado y nada más.",
    "check_variable_wrong": "CUDA_VISIBLE_DEVICES es {value!r}, pero lo prestado es {lent!r}; reinicie el kernel.",
    "check_cuda_untouched": "Este proceso aún no ha usado CUDA, así que verá la GPU que reciba.",
    "check_cuda_context": "Este proceso usa CUDA.",
    "check_cuda_unsure": "Este proceso cargó el controlador CUDA; no se sabe si verá una GPU que reciba ahora.",
    "check_hooks": "Celdas, prompts y depurador esperan a una GPU aparcada.",
    "check_hooks_missing": "No conocemos este ipykernel: {names} no se pueden retener mientras una GPU está aparcada.",
    "help": """\
%gpu                      qué tiene este kernel y qué está libre
%gpu request [N]          conseguir N GPU, o una porción: --slice 1g.18gb | --memory 20G
                          --model h200   --for 2h   --wait 10m | --no-wait   --queue NOMBRE
%gpu keep [30m]           conservar una GPU ociosa
%gpu release              devolverla: [--park | --checkpoint | --restart]
%gpu park | unpark        mover la memoria de GPU al host y de vuelta
%%gpu cpu                 primera línea de una celda: ejecutarla sin la GPU aparcada
%gpu why | queue          por qué es así, y quién espera
%gpu policy               las reglas; --restart yes acepta reinicios
%gpu restart | restore    reiniciar con el préstamo; recuperar variables guardadas
%gpu doctor | help        revisar la instalación; este texto
En Python: gpubroker.request(), await gpubroker.arequest(), with gpubroker.lease(): ...
@gpubroker.on_park y @gpubroker.on_unpark registran cómo su código mueve su memoria de GPU.""",
}
