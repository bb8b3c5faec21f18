"""Text without control or invisible characters: what may be shown of a file that anybody may have made."""

from __future__ import annotations

import re
import unicodedata

LINE_LIMIT = 400
"""Characters of one line that a report shows; longer text ends in `…`."""
MAX_COMBINING = 2
"""Combining marks in a row: enough for every language, too few to paint over other lines."""

_SAFE = re.compile(r"[ -~]*")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Blank to the eye yet of a "letter" or "symbol" category: Hangul fillers, the Braille blank; and the
# variation selectors, which can carry hidden text.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f") | {chr(code) for code in range(0xFE00, 0xFE10)}
_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")


def clean(text: object, *, limit: int = LINE_LIMIT) -> str:
    r"""One line of visible characters. What cannot be seen is spelled out (`\x1b`, `\u202e`)."""
    return _cut(_visible(_LINE_END.sub(" ", _head(str(text), limit))), limit)


def clean_lines(text: object, *, limit: int = LINE_LIMIT, max_lines: int = 400) -> list[str]:
    """The lines of a text, each as `clean` gives it; the last one counts the lines that were left out."""
    lines = _LINE_END.split(str(text).rstrip("\n"))
    shown = [clean(line.expandtabs(4), limit=limit) for line in lines[:max_lines]]
    left_out = len(lines) - len(shown)
    return [*shown, f"… {left_out} more lines"] if left_out else shown


def _head(text: str, limit: int) -> str:
    """Enough of a text to show `limit` characters of it: a huge string costs no more than a long one."""
    return text[: limit + 1]


def _visible(text: str) -> str:
    if _SAFE.fullmatch(text):
        return text
    shown: list[str] = []
    combining = 0
    for character in text:
        category = unicodedata.category(character)
        combining = combining + 1 if category in {"Mn", "Me"} else 0
        if character == "\t" or category == "Zs":
            shown.append(" ")
        elif category in _INVISIBLE or character in _BLANK or combining > MAX_COMBINING:
            shown.append(_spelled(character))
        else:
            shown.append(character)
    return "".join(shown)


def _spelled(character: str) -> str:
    code_point = ord(character)
    if code_point < 0x100:
        return f"\\x{code_point:02x}"
    return f"\\u{code_point:04x}" if code_point < 0x10000 else f"\\U{code_point:08x}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"
