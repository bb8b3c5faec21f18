"""One line that says what is going on: kept up to date on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN_INTERVAL_S = 30.0
_COUNTED = re.compile(r"\d+/\d+")
"""How far something is. What stands before it says what it is, what follows changes with it."""


@contextmanager
def status_line(console: Console) -> Iterator[Callable[[str], None]]:
    if console.is_terminal:
        with console.status("") as status:

            def live(text: str) -> None:
                status.update(Text(text))
                if text.startswith("ATTENTION"):
                    console.print(Text(text, style="bold red"), soft_wrap=True)

            yield live
        return
    last_key, last_time = "", 0.0

    def plain(text: str) -> None:
        nonlocal last_key, last_time
        now = time.monotonic()
        key = _COUNTED.split(text, maxsplit=1)[0]
        if key != last_key or now - last_time >= _PLAIN_INTERVAL_S:
            last_key, last_time = key, now
            console.print(Text(text), soft_wrap=True)

    yield plain
