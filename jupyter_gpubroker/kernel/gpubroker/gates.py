"""Where code of the user's is about to run: cells, prompts, debugger commands. GPU memory that is away comes back first.

A cell that begins with `%%gpu cpu` runs without it instead, and is kept off the GPU.

Everything here wraps things of IPython and ipykernel that may be different in other versions: what is not there is left alone.
A cell is kept from running by an AST transformer, IPython's own way. A debugger command that would have to wait long is refused
instead, since the kernel's control channel must stay free.
"""

from __future__ import annotations

import ast
import asyncio
import bdb
import threading
from typing import Any, Callable, ContextManager, List, Optional

from . import debugger_prompt
from .arrival import Arrival
from .cells import is_cpu_only, is_ours
from .cpu_only import cpu_only
from .errors import GPUBrokerError, Interrupted
from .main_thread import MainThread
from .notices import Notices
from .sentences import say
from .telling import tell, wrapped

DEBUGGER_WAIT_S = 5.0
# Those that run code: a look at a variable calls its __repr__, which reads device memory.
_STEPS = ("continue", "next", "stepIn", "stepOut", "goto")
_LOOKS = ("evaluate", "variables", "setVariable", "copyToGlobals")
_JUPYTER_LOOKS = ("inspectVariables", "richInspectVariables")
DEBUGGER_COMMANDS = frozenset({*_STEPS, *_LOOKS, *_JUPYTER_LOOKS})


class _Here(threading.local):
    """What is known of the cell that runs in this thread. Silent code is not announced."""

    depth = 0  # cells that a cell runs (`%%capture`) are part of it
    is_announced = False
    why_held: Optional[str] = None
    cpu_only: Optional[ContextManager[None]] = None


class Gates:
    """Installed on one IPython shell and its kernel. `cell_runs(bool)` hears when the main thread starts and ends a cell.

    `restarts` tells whether the kernel has saved and is about to be restarted to give its GPU back.
    """

    def __init__(
        self,
        shell: Any,
        main: MainThread,
        arrival: Arrival,
        notices: Notices,
        cell_runs: Callable[[bool], None],
        restarts: Callable[[], bool],
    ) -> None:
        self._shell = shell
        self._main = main
        self._arrival = arrival
        self._notices = notices
        self._cell_runs = cell_runs
        self._restarts = restarts
        self._here = _Here()
        self._undo: List[Callable[[], None]] = []
        self.missing: List[str] = []  # what this ipykernel does not have

    def install(self) -> None:
        events, transformers = self._shell.events, self._shell.ast_transformers
        events.register("pre_run_cell", self._before_cell)
        events.register("post_run_cell", self._after_cell)
        transformers.append(self)
        self._undo += [
            lambda: events.unregister("pre_run_cell", self._before_cell),
            lambda: events.unregister("post_run_cell", self._after_cell),
            lambda: transformers.remove(self),
        ]
        kernel = getattr(self._shell, "kernel", None)
        self._wrap(kernel, "_input_request", self._asking)
        self._wrap(kernel, "do_debug_request", self._debugging)

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _wrap(self, kernel: Any, name: str, wrapped: Callable[[Any], Any]) -> None:
        original = getattr(kernel, name, None)
        if not callable(original):
            self.missing.append(name)
            return
        setattr(kernel, name, wrapped(original))
        self._undo.append(lambda: delattr(kernel, name))

    # --- cells -------------------------------------------------------------------------------------

    def _before_cell(self, info: Any = None) -> None:
        self._here.depth += 1
        if self._here.depth > 1:
            return
        self._main.begins()
        self._here.is_announced, self._here.why_held = True, None
        if threading.current_thread() is threading.main_thread():
            self._cell_runs(True)
        for line in self._notices.take_lines():
            tell(line)
        source = getattr(info, "raw_cell", None) or ""
        if not self._arrival.is_needed or is_ours(source):
            return
        if is_cpu_only(source) and self._is_kept_off():
            return
        try:
            self._arrival.bring_back()
        except (GPUBrokerError, KeyboardInterrupt) as error:
            self._here.why_held = str(error) or say("still_away")

    def _is_kept_off(self) -> bool:
        """Where that does not work, the cell waits like any other."""
        try:
            guard = cpu_only(say("gpu_away"))
            guard.__enter__()
        except (ImportError, AttributeError, TypeError):  # a PyTorch that we do not know
            return False
        self._here.cpu_only = guard
        return True

    def _after_cell(self, result: Any = None) -> None:
        source = getattr(getattr(result, "info", None), "raw_cell", None)
        if source is not None and not source.strip():
            return  # an empty cell ends without having begun, maybe within one that goes on
        self._here.depth = max(self._here.depth - 1, 0)
        if self._here.depth > 0:
            return
        self._main.ends()
        withheld, self._here.cpu_only = self._here.cpu_only, None
        if withheld is not None:
            withheld.__exit__(None, None, None)
        self._here.is_announced, self._here.why_held = False, None
        if threading.current_thread() is threading.main_thread():
            self._cell_runs(False)

    def visit(self, node: ast.AST) -> ast.AST:
        """IPython calls this before it runs the code of a cell."""
        here = self._here
        if here.why_held is not None:
            raise _held(here.why_held)
        if self._arrival.is_needed and not here.is_announced and not _starts_debugger(node):
            raise _held(say("silent_code_held"))
        return node

    # --- prompts -----------------------------------------------------------------------------------

    def _asking(self, original: Any) -> Any:
        def ask(*args: Any, **kwargs: Any) -> Any:
            is_debugger = debugger_prompt.is_open()
            with self._main.waiting("debugger" if is_debugger else "input"):
                while True:
                    try:
                        answer = original(*args, **kwargs)
                    except BaseException as error:
                        if isinstance(error, KeyboardInterrupt) and self._restarts():
                            raise _ended(is_debugger) from None
                        # Interrupted or ended at the prompt: its handlers run now, and they may use the GPU.
                        self._is_back()
                        raise
                    if (is_debugger and debugger_prompt.is_command(answer)) or self._is_back():
                        return answer

        return ask

    def _is_back(self) -> bool:
        if self._here.cpu_only is not None:
            return True
        try:
            self._arrival.bring_back()
        except (GPUBrokerError, KeyboardInterrupt) as error:
            tell(str(error) or say("still_away"))
            return False
        return True

    # --- JupyterLab's debugger ---------------------------------------------------------------------

    def _debugging(self, original: Any) -> Any:
        async def debug(message: Any) -> Any:
            if message.get("command") in DEBUGGER_COMMANDS and self._arrival.is_needed:
                why_not = await self._back_soon()
                if why_not is not None:
                    return _refusal(message, why_not)
            return await original(message)

        return debug

    async def _back_soon(self) -> Optional[str]:
        """None when the memory is back; else a sentence, while the wait goes on."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def end(why_not: Optional[str]) -> None:
            loop.call_soon_threadsafe(lambda: None if ended.done() else ended.set_result(why_not))

        self._arrival.begin(end)
        done, _ = await asyncio.wait([ended], timeout=DEBUGGER_WAIT_S)
        return (
            str(ended.result())
            if done and ended.result()
            else None
            if done
            else say("debugger_waits")
        )


def _ended(is_debugger: bool) -> BaseException:
    """Ends a cell whose kernel is being restarted. A debugger takes an interrupt for the wish to ask again."""
    if not is_debugger:
        return Interrupted(say("restarting_cell"))
    # IPython shows nothing of the exception by which a debugger is left.
    tell(say("restarting_cell"))
    return bdb.BdbQuit()


def _held(sentence: str) -> Exception:
    """The exception by which a cell is kept from running; it shows as the sentence alone."""
    from IPython.core.error import InputRejected

    class CellHeld(InputRejected):
        def _render_traceback_(self) -> List[str]:
            return [wrapped(str(self))]

    return CellHeld(sentence)


def _starts_debugger(node: ast.AST) -> bool:
    """ipykernel starts the debugger by code of its own."""
    first = node.body[0] if isinstance(node, ast.Module) and node.body else None
    return isinstance(first, ast.Import) and first.names[0].name == "debugpy"


def _refusal(message: Any, sentence: str) -> Any:
    """The debug adapter protocol's answer to a command that failed."""
    return {
        "type": "response",
        "seq": message.get("seq", 0),
        "request_seq": message.get("seq", 0),
        "command": message.get("command"),
        "success": False,
        "message": sentence,
        "body": {},
    }
