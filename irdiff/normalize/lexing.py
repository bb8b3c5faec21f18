"""Passes over a whole text that several normalizers share.

Every pass keeps the number of lines, so that canonical lines can be traced to raw ones. All patterns are
linear in the length of the text: alternatives exclude each other and repeats do not back up.
"""

from __future__ import annotations

import re
from collections import Counter

from irdiff.errors import NormalizeError

C_STRING = re.compile(r'("(?:[^"\\\n]|\\.)*+")')
"""A string in which a backslash takes the next character's meaning: MLIR, PTX, GNU assembler."""
LLVM_STRING = re.compile(r'("[^"\n]*+")')
"""A string of LLVM IR, where a quote inside is spelled `\\22`."""

KERNEL = "__kernel__"
"""Stands for the name of a text's one kernel; a text that has the word itself keeps its names."""

_PRIVATE_USE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
HIDDEN = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
"""For character classes: the characters that stand for strings."""
_PERHAPS_HIDDEN = re.compile("([^\x00-\ud7ff])")
"""All of `HIDDEN` and a few more: one range is several times faster to look for than three."""


class Strings:
    """A text whose strings are each hidden behind one character, so that no pass can touch or misread them.

    The characters are of Unicode's private use areas, which `check_text` keeps out of the input.
    """

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._points = (point for area in _PRIVATE_USE for point in area)
        self._characters: dict[str, str] = {}
        self._contents: dict[str, str] = {}
        self.text = self.hide(text)

    def hide(self, text: str) -> str:
        """More text, of whole lines: a string that was seen before has the character that it had."""
        if '"' not in text:
            return text
        parts = self._pattern.split(text)
        for string in dict.fromkeys(parts[1::2]):
            if string not in self._characters:
                point = next(self._points, None)
                if point is None:
                    raise NormalizeError("this text has more than 137,000 different strings")
                self._characters[string] = chr(point)
                self._contents[chr(point)] = string
        parts[1::2] = map(self._characters.__getitem__, parts[1::2])
        return "".join(parts)

    def restore(self, text: str) -> str:
        if not self._contents or text.isascii():
            return text
        parts = _PERHAPS_HIDDEN.split(text)
        parts[1::2] = [self._contents.get(part, part) for part in parts[1::2]]
        return "".join(parts)


def blank_out(match: re.Match[str]) -> str:
    """Replacement that leaves nothing of a match but its line breaks."""
    return "\n" * match.group().count("\n")


_LINE_COMMENT = re.compile(r"//[^\n]*")
_COMMENT_START = re.compile(r"//[^\n]*|/\*")


def drop_c_comments(text: str) -> str:
    """Drop `// …` and `/* … */`; an unclosed block comment is left as it is. Strings must be hidden."""
    if "/*" not in text:
        return _LINE_COMMENT.sub("", text)
    parts: list[str] = []
    position = 0
    while match := _COMMENT_START.search(text, position):
        end = match.end()
        if match.group() == "/*":
            end = text.find("*/", end) + 2
            if end == 1:
                break
        parts.append(text[position : match.start()])
        parts.append(" " + "\n" * text.count("\n", match.start(), end))
        position = end
    parts.append(text[position:])
    return "".join(parts)


_BLANKS = re.compile("  +")


def collapse_spaces(text: str) -> str:
    """One space for each run, none at the edges of a line. Strings must be hidden."""
    lines = [line.strip(" ") for line in text.replace("\t", " ").split("\n")]
    return "\n".join([_BLANKS.sub(" ", line) if "  " in line else line for line in lines])


def drop_unused_labels(text: str, label: str) -> str:
    """Drop lines that are only a label of the form `label` which nothing else in the text names."""
    uses = Counter(re.findall(label, text))
    return re.sub(
        rf"\n({label}):(?=\n|\Z)",
        lambda match: match.group() if uses[match.group(1)] > 1 else "\n",
        f"\n{text}",
    )[1:]
