"""Why a side failed, in one line: what an exception says, without the source that it quotes. Pure.

Triton's compiler quotes the kernel up to the place of an error, marks the place with `^`, and says the reason
on the lines behind it. Where it says none (`tl.static_assert` without a message) the marked line is the
reason. The whole message stays in `Failure.message`, and what was printed in `Failure.stderr`.
"""

from __future__ import annotations

import re

from irdiff.model import Failure, FailureKind

MAX_REASON = 300
_PLACE = re.compile(r"^(?P<type>[A-Za-z_]\w*): (?:at (?P<place>\d+:\d+): ?)?(?P<rest>.*)$", re.DOTALL)
_CARET = re.compile(r"^\s*\^[\s^~]*$")
_QUOTED = re.compile(r".*(?<=\s)\^(?:\s|$)", re.DOTALL)


def reason(failure: Failure) -> str:
    """At most MAX_REASON characters, on one line; never empty where the message is not."""
    found = _PLACE.match(failure.message)
    if failure.kind is not FailureKind.ERROR or found is None or not found["place"]:
        return failure.message[:MAX_REASON]
    words = _behind_quotation(failure.stderr, found["type"]) or _QUOTED.sub("", found["rest"]).strip()
    if not words:
        return failure.message[:MAX_REASON]
    return f"{found['type']}: {words} (at {found['place']})"[:MAX_REASON]


def _behind_quotation(stderr: str, name: str) -> str:
    """The last line of the exception's text, or the line that its mark stands under."""
    lines = stderr.splitlines()
    starts = [n for n, line in enumerate(lines) if re.match(rf"(?:\w+\.)*{name}: at \d+:\d+:", line)]
    told = lines[starts[-1] + 1 :] if starts else []
    marks = [n for n, line in enumerate(told) if _CARET.match(line)]
    if not marks:
        return ""
    behind = [line.strip() for line in told[marks[-1] + 1 :] if line.strip()]
    return behind[-1] if behind else told[marks[-1] - 1].strip() if marks[-1] else ""
