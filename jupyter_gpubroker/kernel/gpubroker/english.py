"""Every sentence of this package in English; `spanish` has the same codes.

A sentence says what happened, why, and what to do, in that order. Reasons are parts of sentences.
"""

from __future__ import annotations

ENGLISH = {
    # --- Nobody to ask --------------------------------------------------------------------------
    "not_managed": (
        "This process borrows no GPUs: no GPU broker started it. It sees whatever devices its "
        "environment shows; open the notebook in a Jupyter server with jupyter_gpubroker to borrow."
    ),
    "switched_off": (
        "The GPU broker is switched off here (GPUBROKER=off). To switch it on for new kernels: "
        "`gpubroker on` in a terminal; and if the Jupyter server was started with GPUBROKER=off, "
        "unset that variable (`unset GPUBROKER`) and start the server anew."
    ),
    "inherited": "This kernel keeps the devices of the job it runs in; the GPU broker leaves them alone.",
    "child_process": (
        "This process was started by a kernel and uses the kernel's GPU; ask for one in the "
        "notebook itself."
    ),
    "no_broker": (
        "The GPU broker does not answer; the notebook runs on without it. Try again in a moment, "
        "or see `%gpu doctor`."
    ),
    "broker_silent": (
        "The GPU broker takes too long to answer; nothing counts as changed that it did not "
        "confirm. Try again in a moment."
    ),
    "broker_unreadable": (
        "What answered is no GPU broker of this version; restart the kernel after an update, or "
        "see `%gpu doctor`."
    ),
    "broker_not_trusted": (
        "What answers as the GPU broker runs as user {uid}, but its folder belongs to user "
        "{owner} or is open to others; nothing was sent."
    ),
    "bad_url": (
        "GPUBROKER_URL must be unix:///path/of/broker.sock; restart the kernel from a server that "
        "sets it."
    ),
    "not_registered": "The GPU broker does not know this kernel yet; try again in a moment.",
    # --- What users type ------------------------------------------------------------------------
    "duration_without_unit": "{text!r} has no unit; write a number with its unit, for example 90s, 10m or 1h30m.",
    "bad_duration": (
        "{text!r} is no duration between 1s and 366d; write a number with its unit, for example "
        "90s, 10m or 1h30m."
    ),
    "memory_without_unit": "{text!r} has no unit; write a size with its unit, for example 20G or 512M.",
    "bad_memory": "{text!r} is no size between 1M and 16T; write one with its unit, for example 20G or 512M.",
    "bad_count": "{text!r} is no number of GPUs; write a whole number from 1 to {most}.",
    "bad_slice": (
        "{text!r} is no name of a slice; write one such as 1g.18gb, or ask by memory: --memory 20G."
    ),
    "slice_or_memory": "A slice has its memory already; give either --slice or --memory.",
    "wait_or_not": "Give either --wait or --no-wait, not both.",
    "one_kind": "A GPU goes back in one way at a time; give one of --park, --checkpoint and --restart.",
    "yes_or_no": "{text!r} is neither yes nor no; write --restart yes or --restart no.",
    "open_quote": "A quotation mark is not closed; close it and run the cell again.",
    "unknown_verb": "`%gpu {text}` does not exist; {nearest}",
    "unknown_option": "The option {text} does not exist here; {nearest}",
    "option_twice": "{name} is given twice; give it once.",
    "option_without_value": "{name} takes no value; leave the value out.",
    "value_missing": "{name} needs a value after it; see `%gpu help`.",
    "too_many_words": "{text!r} is one word too many; see `%gpu help`.",
    "did_you_mean": "did you mean {text}?",
    "see_help": "see `%gpu help`.",
    # --- CUDA_VISIBLE_DEVICES -------------------------------------------------------------------
    "variable_unreadable": (
        "CUDA_VISIBLE_DEVICES={text} was not set: it names no device by number or UUID. `%gpu "
        "request` gets a GPU."
    ),
    "variable_slice": (
        "CUDA_VISIBLE_DEVICES was not set: that slice is not lent to this kernel. `%gpu request "
        "--slice 1g.18gb` asks for one."
    ),
    "variable_foreign": (
        "CUDA_VISIBLE_DEVICES stays as it was: {text} is none of the {count} lent to this kernel, "
        "which count from 0."
    ),
    "variable_hint": (
        "CUDA_VISIBLE_DEVICES was not set: no GPU is lent to this kernel yet. `%gpu request "
        "{count}` asks for what it names."
    ),
    "variable_unset": "CUDA_VISIBLE_DEVICES was not set; the cell goes on without a GPU.",
    # --- Getting a GPU --------------------------------------------------------------------------
    "goal_gpu": "a GPU",
    "goal_return": "your GPU's return",
    "wait_place": "Waiting for {goal}: place {place} of {waiting}.",
    "wait_expected": "Expected in about {left}.",
    "wait_unknown": "No estimate yet.",
    "wait_waited": "Waited {time}.",
    "wait_interrupt": "Interrupt the cell to leave the line.",
    "return_in_cell": "A cell that begins with `%%gpu cpu` runs without it; interrupt this one to change it.",
    "return_at_debugger": (
        "`%gpu cpu EXPRESSION` at the prompt works without it; interrupt to come back to the prompt."
    ),
    "return_at_input": "Interrupt to come back to the prompt.",
    "return_at_breakpoint": "The debugger goes on when it is back.",
    "wait_broker_away": "Still waiting; the broker is away at the moment. {sentence}",
    "wait_over": "Waited {time} for {goal}.",
    "interrupted": "Interrupted; `%gpu` shows how things are.",
    "left_line": "You left the line; nothing is waited for any more. `%gpu request` asks again.",
    "granted": "{what} is yours.",
    "granted_many": "{what} are yours.",
    "granted_open": (
        "It stays yours while you work; when it idles and others wait, you are told before it "
        "goes back."
    ),
    "granted_open_many": (
        "They stay yours while you work; when they idle and others wait, you are told before they "
        "go back."
    ),
    "granted_until": "It goes back in {left} at the latest.",
    "granted_until_many": "They go back in {left} at the latest.",
    "held_already": "You hold {what} already; `%gpu release` gives it back.",
    "held_fewer": (
        "You hold {what}, which is less than you ask for; `%gpu release` gives it back, then ask "
        "again."
    ),
    "going_back_now": "Your last GPU is just going back; ask again in a moment.",
    "cuda_blind": (
        "{library} looked for a GPU in this process before it had one, and CUDA looks only once. "
        "Your lease is kept: `%gpu restart` (or Kernel > Restart) starts the kernel anew with it."
    ),
    "cuda_unsure": (
        "{library} loaded the CUDA driver before this process had a GPU. If the GPU is not seen "
        "now, `%gpu restart` keeps your lease and starts the kernel anew with it."
    ),
    "first_use_asks": "{library} uses GPUs: asking for one before it is imported.",
    "first_use_cpu": (
        "{library} is imported without a GPU and runs on the CPU; `%gpu request` before it first "
        "looks for one gets one."
    ),
    "first_use_hint": "{library} is imported without a GPU; `%gpu request` before its first use gets one.",
    # --- Holding one and giving it back ---------------------------------------------------------
    "no_lease": "This kernel holds no GPU; `%gpu request` asks for one.",
    "way_back": "The way it goes back: {kind}.",
    "slots_free": "{free} of {slots} are free.",
    "waiting_request": "Waiting: {sentence}",
    "kept": "Kept for {time}.",
    "released": "{what} went back.",
    "parked_release": (
        "Your GPU is parked: its memory waits on the host. `%gpu unpark` brings it back; `%gpu "
        "release --restart` gives it up."
    ),
    "parked_already": "Your GPU is parked already; `%gpu unpark` brings it back.",
    "not_parked": "Nothing is parked.",
    "is_back": "{what} is back, with its memory as it was.",
    "context_alive_release": (
        "CUDA keeps hold of the GPU until this process ends or is suspended, so it cannot simply "
        "go back. What can be done:"
    ),
    "choice_parked": "`%gpu release --park`: its memory moves to the host and returns before your next cell",
    "choice_checkpointed": (
        "`%gpu release --checkpoint`: the driver suspends it and brings it back before your next "
        "cell"
    ),
    "choice_restarted": (
        "`%gpu release --restart`: the kernel restarts without a GPU; variables that can be saved "
        "are"
    ),
    "no_choice": "Not possible ({kind}): {why}.",
    "ask_choice": "Park, checkpoint, restart, or nothing? [p/c/r/N] ",
    "ask_restart": "Restart now? [y/N] ",
    "nothing_done": "Nothing was done; the GPU stays yours.",
    "not_given_back": "The GPU stays yours for now: giving it back took too long. `%gpu why` says more.",
    "kind_empty": "at once",
    "kind_parked": "parked, its memory waits on the host",
    "kind_checkpointed": "suspended by the driver",
    "kind_restarted": "by a restart of the kernel",
    "kind_kept": "no way works for this process now, so it stays",
    "simulated": "simulated",
    # --- Notices, and GPUs that are away --------------------------------------------------------
    "notice_due": "Your GPU goes back in {left} ({kind}).",
    "notice_due_many": "Your GPUs go back in {left} ({kind}).",
    "notice_due_unsure": "Your GPU is asked for in {left}; as things are it cannot be taken without harm and would stay.",
    "keep_in_cell": "`%gpu keep` keeps it.",
    "keep_at_debugger": "`%gpu keep` keeps it, typed at this prompt.",
    "keep_at_input": "To keep it, answer the prompt.",
    "keep_at_breakpoint": "To keep it, step or continue in the debugger.",
    "notice_over": "Your GPU stays yours.",
    "notice_kept": "Your GPU stays yours; it is kept for {time}.",
    "gone_back": "Your idle GPU went to somebody who waited; `%gpu request` asks for one again.",
    "gone_parked": (
        "Your idle GPU went to somebody who waited; its memory waits on the host, and it returns "
        "before your next cell runs."
    ),
    "notice_past": "Your GPU went to somebody who waited.",
    "notice_returned": "Your GPU is back, as you left it.",
    "lease_over": "Your GPU lease ended; `%gpu why` says why, `%gpu request` asks for one again.",
    "still_away": (
        "Interrupted: your GPU is still parked, so the code was not run. Run it again to wait for "
        "the GPU, or with `%%gpu cpu` as its first line to run it without."
    ),
    "still_leaving": "Your GPU is just being given back; waiting until that is done.",
    "still_returning": (
        "Your GPU was granted again, but its memory is not back yet. Run the cell again in a "
        "moment."
    ),
    "parked_lease_gone": (
        "The lease of your parked GPU has ended, so its memory cannot return. What lay on the GPU "
        "is lost; save the rest and restart the kernel."
    ),
    "silent_code_held": "Your GPU is parked; code that the front end runs by itself waits for your next cell.",
    "debugger_waits": "Your GPU is parked and waited for; press the button again when it is back.",
    # --- Reasons found in this process ----------------------------------------------------------
    "reason_unverified_hardware": "it was not yet seen to work with the GPUs of this machine",
    "reason_nothing_to_park": "nothing of this process is on the GPU",
    "reason_no_parker": (
        "nobody knows how to move this process' GPU memory; register @gpubroker.on_park and "
        "@gpubroker.on_unpark"
    ),
    "reason_library_not_covered": (
        "the GPU memory of {library} cannot be moved; register @gpubroker.on_park and "
        "@gpubroker.on_unpark"
    ),
    "reason_park_not_preloaded": (
        "torch-memory-saver was not loaded when the kernel started; install the extra `park` and "
        "switch it on"
    ),
    "reason_park_expandable_segments": (
        "PyTorch maps its memory itself (expandable_segments), so it cannot be moved; unset that "
        "and restart"
    ),
    "reason_threads_use_gpu": "the thread {thread} may use the GPU in the background",
    "reason_host_memory_short": "the host has {free_mib} MiB free and {wanted_mib} MiB are needed",
    "reason_gpu_busy": "work runs on the GPU",
    "reason_gpu_memory_short": "the GPU has not enough free memory yet",
    "reason_cuda_unusable": "CUDA is unusable in this process; restart the kernel",
    "reason_cell_running": "a cell is running",
    "reason_callback_late": "a function registered with on_park or on_unpark did not end in time",
    "reason_callback_failed": "a function registered with on_park or on_unpark failed ({error})",
    "reason_park_failed": "moving the memory failed ({error})",
    "reason_unpark_failed": "bringing the memory back failed ({error})",
    "reason_contents_changed": (
        "GPU memory did not come back as it left: checksums differ. Do not trust what lies there; "
        "load your data anew."
    ),
    "reason_nccl_in_use": "the process uses NCCL, which the driver cannot suspend",
    "reason_context_alive": "CUDA holds the GPU",
    "reason_no_consent": "you have not agreed to a restart",
    "reason_not_offered": "it is not offered at the moment",
    # --- Restarts -------------------------------------------------------------------------------
    "restart_keeps": "A restart keeps: {names}.",
    "restart_keeps_none": "A restart keeps no variables.",
    "restart_loses": "It loses {name} ({why}).",
    "restart_loses_always": "What runs at the moment, threads and open files are lost.",
    "consents": (
        "You agree that an idle GPU may be taken back by restarting this kernel; `%gpu policy "
        "--restart no` takes that back."
    ),
    "consents_not": (
        "This kernel is not restarted to take back an idle GPU; `%gpu policy --restart yes` "
        "allows it."
    ),
    "restarting": "Restarting the kernel; your lease is kept.",
    "restarting_without": (
        "The kernel is restarting without a GPU. What could be saved comes back with `%gpu restore`."
    ),
    "restarting_cell": (
        "This cell was ended: as you agreed, the kernel is restarting to give its idle GPU to "
        "somebody who waits. What could be saved comes back with `%gpu restore`."
    ),
    "gpu_away": (
        "This would use the GPU, which `%gpu cpu` keeps this code off. Without it the code waits "
        "until the GPU is back."
    ),
    "saving_away": "it lies on the GPU, which is parked",
    "restart_by_hand": "No Jupyter server watches over this kernel; restart it by hand.",
    "restore_ready": "Your variables were saved before the restart; `%gpu restore` brings them back.",
    "restored": "Restored: {names}. All of it is on the CPU; `%gpu request` asks for a GPU.",
    "not_restored": "Not saved: {name} ({why}).",
    "nothing_to_restore": "Nothing was saved for this kernel.",
    "restore_failed": "What was saved cannot be read here ({error}); it lies in {folder}.",
    "restore_cell_head": "Saved before the kernel was restarted: {names}",
    "restore_cell_lost": "Not saved: {name} ({why})",
    "defined_here": "{name} is defined in the notebook; install cloudpickle to save it",
    "folder_not_private": (
        "{folder} is open to others, so nothing is saved to it or loaded from it; close it: chmod "
        "700."
    ),
    # --- Questions ------------------------------------------------------------------------------
    "ended_ago": "{sentence} ({time} ago)",
    "numbers": "In numbers: {numbers}.",
    "number_place": "place {value} in line",
    "number_waited_ms": "waited {value}",
    "number_expected_in_ms": "expected in {value}",
    "number_held_for_ms": "held for {value}",
    "number_verdict_for_ms": "like this for {value}",
    "number_limit_ms": "may be taken after {value} of it",
    "number_kept_for_ms": "kept for another {value}",
    "number_keeps_left": "{value} more keeps possible",
    "nothing_to_explain": "This kernel holds no GPU and has asked for none.",
    "line_empty": "Nobody waits.",
    "line_entry": "{place}. {whose} {what}, waiting {waited}",
    "line_mine": "you:",
    "line_other": "somebody:",
    "policy": "The rules `{name}` apply: {sentence}",
    "policy_none": "No rule takes this kernel's GPU back for standing idle.",
    "policy_keeps": "{count} keeps are left.",
    # --- Checks ---------------------------------------------------------------------------------
    "check_managed": "This kernel borrows its GPUs from the broker.",
    "check_broker": "The broker answers; its version is {version}. {sentence}",
    "check_devices": "The broker sees the GPUs.",
    "check_devices_simulated": "The broker sees simulated GPUs.",
    "check_session": "The broker knows this kernel.",
    "check_link": "The thread that listens to the broker lives.",
    "check_link_dead": "The thread that listens to the broker has ended; restart the kernel.",
    "check_variable": "CUDA_VISIBLE_DEVICES shows what is lent and nothing else.",
    "check_variable_wrong": "CUDA_VISIBLE_DEVICES is {value!r}, but {lent!r} is lent; restart the kernel.",
    "check_cuda_untouched": "This process has not used CUDA yet, so it will see a GPU that it gets.",
    "check_cuda_context": "This process uses CUDA.",
    "check_cuda_unsure": "This process loaded the CUDA driver; whether it sees a GPU it gets now is unknown.",
    "check_hooks": "Cells, prompts and the debugger wait for a parked GPU.",
    "check_hooks_missing": "This ipykernel is unknown to us: {names} cannot be held while a GPU is parked.",
    "help": """\
%gpu                      what this kernel holds, and what is free
%gpu request [N]          get N GPUs, or one slice: --slice 1g.18gb | --memory 20G
                          --model h200   --for 2h   --wait 10m | --no-wait   --queue NAME
%gpu keep [30m]           hold on to an idle GPU
%gpu release              give it back: [--park | --checkpoint | --restart]
%gpu park | unpark        move GPU memory to the host and back
%%gpu cpu                 as the first line of a cell: run it without a parked GPU
%gpu why | queue          why it is so, and who waits
%gpu policy               the rules; --restart yes agrees to restarts
%gpu restart | restore    restart with the lease; bring saved variables back
%gpu doctor | help        check the set-up; this text
In Python: gpubroker.request(), await gpubroker.arequest(), with gpubroker.lease(): ...
@gpubroker.on_park and @gpubroker.on_unpark register how your code moves its GPU memory.""",
}
