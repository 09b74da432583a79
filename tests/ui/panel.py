"""The GPU panel, the chips and the notifications in a page, as their user knows them."""

from __future__ import annotations

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.ui.desk import SEEN_MS

TAB = "[data-id='jupyter-gpubroker-panel']"
FILES_TAB = "[data-id='filebrowser']"
OURS = ".gpb-Panel, .gpb-ToolbarChip, .gpb-StatusItem, .gpb-Strip, .gpb-Output"
GRAVE = {"serious", "critical"}
# Whether anything in it is wider than its place and not clipped on purpose.
OVERFLOWS = """panel => [panel, ...panel.querySelectorAll('*')]
    .filter(each => each.getBoundingClientRect().right > panel.getBoundingClientRect().right + 1)
    .filter(each => !each.closest('.gpb-Name, .gpb-Gpu-name, .gpb-Card-device, .gpb-Slot, svg'))
    .map(each => each.className + ': ' + each.textContent.slice(0, 60))"""


class Panel:
    """The side bar's panel. Opened, it hides the file browser until `close`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.node = page.locator(".gpb-Panel")
        self.cards = self.node.locator(".gpb-Card")
        self.banner = self.node.locator(".gpb-Banner")
        self.refusals = self.node.locator(".gpb-Refused:not(:empty)")

    def open(self) -> None:
        if not self.node.is_visible():
            self.page.locator(TAB).click()
        expect(self.node).to_be_visible(timeout=SEEN_MS)

    def close(self) -> None:
        self.page.locator(FILES_TAB).click()
        expect(self.node).to_be_hidden()

    def section(self, title: str) -> Locator:
        return self.node.get_by_role("region", name=title)

    def button(self, label: str) -> Locator:
        return self.node.get_by_role("button", name=label, exact=True)

    def request(self) -> None:
        """Ask for what the form offers first."""
        self.section("Request").locator("button[type='submit']").click()

    def submit(self, command: str) -> None:
        """Ask for a batch job by the form."""
        self.button("New batch job").click()
        form = self.node.get_by_role("form", name="New batch job")
        form.get_by_label("A command").check()
        form.get_by_label("Command", exact=True).fill(command)
        self.button("Submit").click()
        expect(form).to_have_count(0, timeout=SEEN_MS)

    def job(self, words: str) -> Locator:
        """A batch job's row."""
        return self.node.locator("[data-job]", has_text=words)

    def overflow(self) -> list[str]:
        """What sticks out of the panel."""
        found: list[str] = self.node.evaluate(OVERFLOWS)
        return found


class Chip:
    """How things stand for the visible notebook, in its toolbar."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.node = page.locator(".gpb-ToolbarChip:visible")
        self.button = self.node.locator(".gpb-Chip-button")
        self.status = page.locator(".gpb-StatusItem .gpb-Chip-button")

    def shows(self, text: str | re.Pattern[str]) -> None:
        """Wait until the chip and the status bar say so."""
        expect(self.button).to_have_text(text, timeout=SEEN_MS)
        expect(self.status).to_have_text(text, timeout=SEEN_MS)

    def choose(self, label: str) -> None:
        """From the menu below it."""
        self.button.click()
        self.page.locator(".gpb-Menu .lm-Menu-itemLabel").get_by_text(label, exact=True).click()


class Toast:
    """JupyterLab's notification with these words."""

    def __init__(self, page: Page, words: str) -> None:
        self.node = page.locator(".Toastify__toast", has_text=words)

    def seen(self) -> None:
        expect(self.node).to_be_visible(timeout=SEEN_MS)

    def answer(self, label: str) -> None:
        self.node.get_by_role("button", name=label, exact=True).click()

    def gone(self) -> None:
        expect(self.node).to_have_count(0, timeout=SEEN_MS)


class Question:
    """The dialog that asks before something is lost."""

    def __init__(self, page: Page) -> None:
        self.node = page.locator(".jp-Dialog-content")

    def asks(self, words: str) -> None:
        expect(self.node).to_contain_text(words, timeout=SEEN_MS)

    def answer(self, label: str) -> None:
        self.node.get_by_role("button", name=label, exact=True).click()
        expect(self.node).to_have_count(0)


class Output:
    """What a batch job writes."""

    def __init__(self, page: Page) -> None:
        self.node = page.locator(".gpb-Output:visible")
        self.stdout = self.node.get_by_role("region", name="Output", exact=True)
        self.stderr = self.node.get_by_role("region", name="Messages and errors")


def violations(page: Page) -> list[str]:
    """What axe-core finds in our parts that shuts people out."""
    results = Axe().run(page, context=OURS)
    return [
        f"{found['id']}: {node['html']}"
        for found in results.response["violations"]
        if found["impact"] in GRAVE
        for node in found["nodes"]
    ]
