"""The watch around the pure state: what it attaches to, what it believes, and what it survives."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from jupyter_client.session import Session

from jupyter_gpubroker.server.activity import Message
from jupyter_gpubroker.server.watcher import KernelWatch, Watches
from tests.unit.server.test_link import Manager

KERNEL = Session(key=b"k")


class Connection:
    """An open websocket."""


class Changes:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def frames(
    kind: str, content: dict[str, Any], request: str = "cell", key: bytes = b"k"
) -> list[bytes]:
    session = Session(key=key)
    parent = {"msg_type": "execute_request", "msg_id": request, "session": "s"}
    message = session.msg(kind, content=content, parent=parent)
    message["parent_header"] = parent
    return [b"topic", *session.serialize(message)]


def doing(watch: KernelWatch) -> str:
    return watch.activity


def watching() -> tuple[KernelWatch, Manager, Changes]:
    changes, manager = Changes(), Manager()
    watch = KernelWatch("kernel", changes)
    watch.attach(manager)
    return watch, manager, changes


def test_nothing_is_known_before_and_after_it_listens() -> None:
    watch = KernelWatch("kernel", Changes())
    assert doing(watch) == "unknown"
    watch.heard(Message("input_request", {"msg_id": "x"}, {}))
    assert doing(watch) == "unknown"
    watch.attach(Manager())
    assert doing(watch) == "idle"
    watch.detach()
    assert doing(watch) == "unknown"


def test_what_the_kernel_publishes_is_believed_when_it_is_signed() -> None:
    watch, manager, _ = watching()
    hear = manager.streams[0].callback
    hear(frames("status", {"execution_state": "busy"}, key=b"forged"))
    assert doing(watch) == "idle"
    hear(frames("status", {"execution_state": "busy"}))
    assert doing(watch) == "running"


def test_outputs_and_rubbish_are_passed_over() -> None:
    watch, manager, changes = watching()
    before = changes.count
    for raw in (
        frames("stream", {"text": "x"}),
        [],
        [b""],
        [b"<IDS|MSG>", b"no", b"{", b"", b"", b""],
    ):
        manager.streams[0].callback(raw)
    assert (doing(watch), changes.count) == ("idle", before)


def test_a_restart_begins_anew_on_the_new_ports() -> None:
    watch, manager, _ = watching()
    manager.streams[0].callback(frames("status", {"execution_state": "busy"}))
    successor = Manager()
    watch.attach(successor)
    assert manager.streams[0].closed()
    assert doing(watch) == "idle"
    successor.streams[0].callback(frames("status", {"execution_state": "busy"}))
    assert doing(watch) == "running"


def test_front_ends_are_the_open_connections_over_restarts() -> None:
    watch, _, changes = watching()
    one, other = Connection(), Connection()
    before = changes.count
    watch.connected(one)
    watch.connected(other)
    watch.attach(Manager())
    assert watch.front_ends == 2
    watch.disconnected(one)
    watch.disconnected(one)
    assert watch.front_ends == 1
    assert changes.count >= before + 3
    del other
    assert watch.front_ends == 0, (
        "a connection that vanished without a word is not counted for ever"
    )


def buffered(watch: KernelWatch, manager: Manager, *messages: tuple[str, list[bytes]]) -> None:
    buffers: dict[str, Any] = defaultdict(lambda: {"buffer": []})
    buffers[watch.kernel_id] = {"buffer": list(messages)}
    kernels = SimpleNamespace(_kernel_buffers=buffers)
    manager.parent = kernels


def test_a_prompt_that_waits_in_the_servers_buffer_is_found() -> None:
    watch, manager, _ = watching()
    manager.streams[0].callback(frames("status", {"execution_state": "busy"}))
    stdin = ("stdin", frames("input_request", {"prompt": "?"}))
    buffered(watch, manager, ("iopub", frames("stream", {"text": "x"})), stdin)
    watch.look_at_buffer()
    watch.look_at_buffer()
    assert doing(watch) == "input"


def test_with_a_page_open_the_buffer_is_not_looked_at() -> None:
    watch, manager, _ = watching()
    manager.streams[0].callback(frames("status", {"execution_state": "busy"}))
    buffered(watch, manager, ("stdin", frames("input_request", {})))
    page = Connection()
    watch.connected(page)
    watch.look_at_buffer()
    assert doing(watch) == "running"


def test_a_server_without_such_a_buffer_is_no_trouble() -> None:
    watch, manager, _ = watching()
    manager.streams[0].callback(frames("status", {"execution_state": "busy"}))
    for above in (None, object(), Connection()):
        manager.parent = above
        watch.look_at_buffer()
    assert doing(watch) == "running"


def test_a_kernel_that_cannot_be_watched_is_no_trouble() -> None:
    class Unreachable(Manager):
        def connect_iopub(self) -> Any:
            raise OSError("too many open files")

    watch = Watches(Changes()).attach("kernel", Unreachable())
    assert doing(watch) == "unknown"


def test_watches_are_found_by_kernel_until_forgotten() -> None:
    watches = Watches(Changes())
    manager = Manager()
    watch = watches.attach("kernel", manager)
    assert watches.get("kernel") is watch
    assert watches.attach("kernel", Manager()) is watch
    assert list(watches) == [watch]
    watches.forget("kernel")
    watches.forget("kernel")
    assert watches.get("kernel") is None
    assert all(stream.closed() for stream in manager.streams)


def test_open_pages_are_told_that_the_process_was_replaced() -> None:
    class Page(Connection):
        is_told = False

        def on_kernel_restarted(self) -> None:
            self.is_told = True

    unknown, page = Connection(), Page()
    watch, _, _ = watching()
    for connection in (unknown, page):
        watch.connected(connection)
    watch.tell_of_restart()
    assert page.is_told
