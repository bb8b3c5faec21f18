"""The system's Chromium, driven by playwright, which brings no browser of its own here.

As a program it takes a picture of a page:

    python -m tests.programs.browser PAGE.html OUT.png [--dark] [--width 390] [--hash '#group-1']
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
NOT_RUN = "the HTML report was not opened in a browser"
"""How every reason begins that `missing` gives."""
_FLAGS = ("--disable-gpu", "--disable-dev-shm-usage")


def find() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def missing() -> str | None:
    """What there must be to open a page and is not, in words."""
    if find() is None:
        return f"{NOT_RUN}: no Chromium is on the path (Debian: apt-get install chromium)"
    if importlib.util.find_spec("playwright") is None:
        return f"{NOT_RUN}: playwright, of the development dependencies, is not installed (make unit)"
    return None


@contextmanager
def chromium() -> Iterator[Browser]:
    """Starts the browser that `find` finds, with a profile of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=_FLAGS, chromium_sandbox=False)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page of its own that remembers what it asked for, and what the browser complained of."""

    def __init__(self, browser: Browser, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": height},
            is_mobile=width < 600,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        self.complaints: list[str] = []
        """Exceptions, whatever is written to the console, and violations of the page's policy."""
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path, hash_: str = "") -> None:
        """Returns when the page has loaded."""
        self.page.goto("about:blank")  # the same page with another hash would not load again
        self.complaints.clear()
        self.requests.clear()
        self.page.goto(path.absolute().as_uri() + hash_, wait_until="load")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        return self.page.evaluate(expression)

    def until(self, expression: str) -> None:
        """Waits for an expression to be true, five minutes at most."""
        self.page.wait_for_function(expression, timeout=300_000)

    def count(self, selector: str) -> Any:
        return self.evaluate(f"document.querySelectorAll({selector!r}).length")


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--hash", default="")
    parser.add_argument("--run", default="", help="JavaScript to run before the picture")
    chosen = parser.parse_args()
    if reason := missing():
        print(reason, file=sys.stderr)
        return 1
    with chromium() as browser:
        watched = Watched(browser, width=chosen.width, height=chosen.height, dark=chosen.dark)
        watched.open(chosen.page, chosen.hash)
        if chosen.run:
            watched.evaluate(chosen.run)
        watched.page.screenshot(path=chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
