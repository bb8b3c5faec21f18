"""A headless Chromium through its own protocol on two pipes: no driver, no package.

As a program it takes a picture of a page:

    python tests/integration/browser.py PAGE.html OUT.png [--dark] [--width 390] [--hash '#group-1']
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 60
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")


def find() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page of a running Chromium. `events` holds all that it reported, newest last."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer = b""
        self._next = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Performance"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer.get("result", {})
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], PATIENCE_S)[0]:
                raise RuntimeError(f"Chromium said nothing for {PATIENCE_S} s")
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                raise RuntimeError("Chromium ended")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, hash_: str = "") -> None:
        """Returns when the page has loaded."""
        self._load("about:blank")  # the same page with another hash would not load again
        self._load(path.absolute().as_uri() + hash_)

    def _load(self, url: str) -> None:
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def key(self, key: str) -> None:
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            code = {"windowsVirtualKeyCode": 13} if key == "Enter" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                **code,
                **(text if kind == "keyDown" else {}),
            )

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def prefer(self, scheme: str) -> None:
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def complaints(self) -> list[str]:
        """Exceptions, console errors and violations of the page's policy."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            if method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            if method == "Runtime.consoleAPICalled":
                found.append(str(parameters["args"]))
        return found

    def requests(self) -> list[str]:
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]


@contextmanager
def chromium() -> Iterator[Page]:
    """Starts the browser that `find` finds, with a profile of its own."""
    binary = find()
    assert binary, "no chromium"
    to_browser, write = os.pipe()
    read, from_browser = os.pipe()

    def wire() -> None:
        # Chromium reads commands from descriptor 3 and answers on 4
        low, high = os.dup(to_browser), os.dup(from_browser)
        os.dup2(low, 3)
        os.dup2(high, 4)

    with tempfile.TemporaryDirectory(prefix="irdiff-chromium-", ignore_cleanup_errors=True) as profile:
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            "--no-first-run",
        ]
        flags += ["--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"]
        process = subprocess.Popen(
            [binary, *flags, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=wire,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(write, read)
        finally:
            process.terminate()
            process.wait(30)
            os.close(write)
            os.close(read)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--hash", default="")
    parser.add_argument("--run", default="", help="JavaScript to run before the picture")
    chosen = parser.parse_args()
    with chromium() as page:
        page.resize(chosen.width, chosen.height, phone=chosen.width < 600)
        page.prefer("dark" if chosen.dark else "light")
        page.open(chosen.page, chosen.hash)
        if chosen.run:
            page.evaluate(chosen.run)
        chosen.out.write_bytes(page.picture())


if __name__ == "__main__":
    _main()
