"""What users register with `@gpubroker.on_park` and `@gpubroker.on_unpark`: how their code gives memory back and returns.

Importing and registering needs no broker. A function defined anew by running its cell again replaces its former self.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple, TypeVar

Callback = TypeVar("Callback", bound=Callable[[], Any])
Key = Tuple[str, str]

_on_park: Dict[Key, Callable[[], Any]] = {}
_on_unpark: Dict[Key, Callable[[], Any]] = {}


def on_park(callback: Callback) -> Callback:
    """Call this when the GPU is to be given back: move device memory to the host. It may be `async`."""
    _on_park[_key(callback)] = callback
    return callback


def on_unpark(callback: Callback) -> Callback:
    """Call this when the GPU is back, before the next cell runs. It may be `async`."""
    _on_unpark[_key(callback)] = callback
    return callback


def registered() -> Tuple[List[Callable[[], Any]], List[Callable[[], Any]]]:
    """Those for the way there, in the order of their registration, and those for the way back, in reverse."""
    return list(_on_park.values()), list(_on_unpark.values())[::-1]


def forget() -> None:
    """Unregister all."""
    _on_park.clear()
    _on_unpark.clear()


def call(callback: Callable[[], Any]) -> None:
    """Run a callback to its end, in this thread, sync or async."""
    result = callback()
    if hasattr(result, "__await__"):
        import asyncio

        asyncio.run(_awaited(result))


async def _awaited(result: Any) -> None:
    await result


def _key(callback: Callable[[], Any]) -> Key:
    if not callable(callback):
        raise TypeError(
            "on_park and on_unpark decorate functions: @gpubroker.on_park, without brackets"
        )
    return getattr(callback, "__module__", ""), getattr(callback, "__qualname__", repr(callback))
