"""JupyterLab in a browser, as its user knows it: files, notebooks, cells, outputs, prompts, menus.

Waits for what is to be seen, never for time.
"""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

LOADED_MS = 60_000
SEEN_MS = 30_000
NUMBERED = re.compile(r"\[\d+\]:")
ERRORS = (
    "[data-mime-type='application/vnd.jupyter.error'],"
    "[data-mime-type='application/vnd.jupyter.stderr']"
)
# The colour of an element's text, and of the nearest paper below it that is not transparent.
COLOURS = """element => {
    let behind = element;
    while (/^(transparent|rgba\\(.*, 0\\))$/.test(getComputedStyle(behind).backgroundColor)) {
        behind = behind.parentElement;
    }
    return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
}"""


class Cell:
    """One code cell. `notice` is the box in which we speak without being asked."""

    def __init__(self, page: Page, cell: Locator) -> None:
        self._page = page
        self._cell = cell
        self._number = cell.locator(".jp-InputArea-prompt")
        self._editor = cell.locator(".jp-InputArea-editor .cm-content")
        self._outputs = cell.locator(".jp-OutputArea-output")
        self.errors = cell.locator(ERRORS)
        self.notice = cell.locator(".jp-RenderedHTMLCommon div[style*='border-left']")
        self.input = cell.locator("input.jp-Stdin-input")

    @property
    def text(self) -> str:
        """All that it shows below its code."""
        return "\n".join(self._outputs.all_inner_texts())

    def start(self) -> None:
        """Run it and go on looking."""
        self._editor.click()
        self._page.keyboard.press("Control+Enter")

    def ended(self) -> str:
        """Wait for its end; what it shows then."""
        expect(self._number).to_have_text(NUMBERED, timeout=SEEN_MS)
        return self.text

    def run(self) -> str:
        """Run it to its end; what it shows then. A cell is run once: its number is how one sees the end."""
        self.start()
        return self.ended()

    def asked(self) -> None:
        """Wait until it asks for input."""
        expect(self.input).to_be_visible(timeout=SEEN_MS)

    def answer(self, text: str) -> None:
        """Type an answer at its prompt, which is gone then."""
        self.asked()
        prompt = self.input.element_handle()
        prompt.fill(text)
        prompt.press("Enter")
        prompt.wait_for_element_state("hidden", timeout=SEEN_MS)

    def break_at(self, line: int) -> None:
        """Click into the margin beside a line, as the debugger's user does."""
        number = self._cell.locator(".cm-lineNumbers .cm-gutterElement").nth(line)
        margin = self._cell.locator(".cm-gutter.cm-breakpoint-gutter")
        across, down = margin.bounding_box(), number.bounding_box()
        assert across is not None
        assert down is not None
        self._page.mouse.click(across["x"] + 2, down["y"] + down["height"] / 2)


class Notebook:
    """An open notebook, its kernel ready."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._panel = page.locator(".jp-NotebookPanel:visible")
        self._cells = self._panel.locator(".jp-CodeCell")
        self.continue_button = page.locator("[data-command='debugger:continue']")
        self.ready()

    def ready(self) -> None:
        """Wait until the kernel is connected and has nothing to do."""
        status = self._page.locator("#jp-main-statusbar", has_text=re.compile(r"\| Idle"))
        expect(status).to_be_visible(timeout=LOADED_MS)

    def cell(self, at: int) -> Cell:
        """The code cell `at`, from 0."""
        return Cell(self._page, self._cells.nth(at))

    def interrupt(self) -> None:
        """The square button."""
        self._panel.locator("[data-command='notebook:interrupt-kernel']").click()

    def restart(self) -> None:
        """Kernel > Restart Kernel…, and yes."""
        menu(self._page, "Kernel", "kernelmenu:restart")
        confirm(self._page)
        self.ready()

    def debug(self) -> None:
        """The button with the bug."""
        self._panel.locator(".jp-DebuggerBugButton").click()
        expect(self._panel.locator(".cm-gutter.cm-breakpoint-gutter").first).to_be_visible(
            timeout=SEEN_MS
        )


class Desk:
    """The browser's page with JupyterLab in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        expect(page.locator(".jp-DirListing-content")).to_be_visible(timeout=LOADED_MS)

    def open(self, words: str) -> Notebook:
        """Double-click the file with these words in its name in the file browser."""
        self.page.locator(".jp-FileBrowser [data-command='filebrowser:refresh']").click()
        self.page.locator(".jp-DirListing-itemName", has_text=words).dblclick()
        return Notebook(self.page)

    def close(self) -> None:
        """Close the one notebook that is open; what it shows is not saved."""
        menu(self.page, "File", "application:close-all")
        self.page.locator(".jp-Dialog .jp-mod-warn").click()
        expect(self.page.locator(".jp-NotebookPanel")).to_have_count(0, timeout=SEEN_MS)

    def wear(self, theme: str) -> None:
        """Settings > Theme."""
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text("Settings", exact=True).click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text("Theme", exact=True).hover()
        self.page.locator(".lm-Menu-itemLabel").get_by_text(theme, exact=True).click()
        expect(self.page.locator(f"body[data-jp-theme-name='{theme}']")).to_be_attached(
            timeout=SEEN_MS
        )
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0, timeout=SEEN_MS)


def contrast(text: Locator) -> float:
    """How far a text's colour stands out from what is behind it: 1 is not at all, 4.5 is what WCAG 2 (1.4.3) asks for."""
    ink, paper = (luminance(colour) for colour in text.evaluate(COLOURS))
    return (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)`, by WCAG 2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def menu(page: Page, name: str, command: str) -> None:
    """Choose from the menu bar."""
    page.locator(".lm-MenuBar-itemLabel").get_by_text(name, exact=True).click()
    page.locator(f".lm-Menu-item[data-command='{command}']").click()


def confirm(page: Page) -> None:
    page.locator(".jp-Dialog .jp-mod-accept").click()
