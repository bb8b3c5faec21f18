"""Passes over a whole text that several assemblies share.

Every pass keeps the number of lines, so that canonical lines can be traced to raw ones. All patterns are
linear: alternatives exclude each other and repeats that could back up are possessive.
"""

from __future__ import annotations

import re
from collections import Counter

STRING = r'"(?:[^"\\\n]|\\.)*+"'
KERNEL = "__kernel__"
"""Stands for the name of a text's one kernel; a text that has the word itself keeps its names."""

_SPACES = re.compile(r"[ \t]{2,}|\t")
_STRING_OR_SPACES = re.compile(rf"({STRING})|[ \t]{{2,}}|\t")
_EDGES = re.compile(r"^ | $", re.M)


def blank_out(match: re.Match[str]) -> str:
    """Replacement that leaves nothing of a match but its line breaks."""
    return "\n" * match.group().count("\n")


def drop_c_comments(text: str) -> str:
    """Drop `// …` and `/* … */` outside strings; an unclosed block comment is left as it is."""
    if "/*" not in text:
        return _STRING_OR_LINE_COMMENT.sub(r"\1", text)
    parts: list[str] = []
    position = 0
    for match in _STRING_OR_COMMENT_START.finditer(text):
        if match.start() < position or match.group(1):
            continue
        if text.startswith("/*", match.start()):
            end = text.find("*/", match.start() + 2) + 2
            if end == 1:
                break
        else:
            end = match.end()
        parts.append(text[position : match.start()])
        parts.append(" " + "\n" * text.count("\n", match.start(), end))
        position = end
    parts.append(text[position:])
    return "".join(parts)


_STRING_OR_LINE_COMMENT = re.compile(rf"({STRING})|//[^\n]*")
_STRING_OR_COMMENT_START = re.compile(rf"({STRING})|//[^\n]*|/\*")


def collapse_spaces(text: str) -> str:
    """One space for each run outside strings, none at the edges of a line."""
    if '"' in text:
        text = _STRING_OR_SPACES.sub(lambda match: match.group(1) or " ", text)
    else:
        text = _SPACES.sub(" ", text)
    return _EDGES.sub("", text)


def drop_unused_labels(text: str, label: str) -> str:
    """Drop lines that are only a label of the form `label` which nothing else in the text names."""
    uses = Counter(re.findall(label, text))
    return re.sub(
        rf"^({label}):$", lambda match: match.group() if uses[match.group(1)] > 1 else "", text, flags=re.M
    )
