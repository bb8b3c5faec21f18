"""Finds the reason of a compiler's failure in its output: the first diagnostic or assertion, and the failed
pass.

MLIR prints its diagnostic, then the whole module, then a stack trace, so the reason is not at the end. The
text, of a file its first 16 MiB, is searched for the first reason; its beginning and its end are kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

_KEPT_BYTES = 3000
"""Bytes of the beginning, and of the end."""
_SEARCHED_BYTES = 16 << 20
_CHARACTERS = 300
_LINE_CHARACTERS = 2000
_TELLING = re.compile(r"Assertion|UNREACHABLE|LLVM ERROR|Pipeline failed|\b(?:error|fatal)\s*:")
"""A line without one of these is skipped, because the patterns below are slow on long lines."""
_ASSERTION = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+): .*?Assertion [`'](?P<text>.*)' failed")
_UNREACHABLE = re.compile(r"^(?P<text>.*\S)?\s*UNREACHABLE executed(?: at (?P<file>[^\s:]+):(?P<line>\d+))?")
_LLVM_ERROR = re.compile(r"LLVM ERROR: (?P<text>.+)")
_DIAGNOSTIC = re.compile(
    r"^(?:(?P<file>[^\s:]+):(?P<line>\d+):\d+|loc\(.*\)|<unknown>:\d+|ptxas[^:;]*|ld\.lld)\s*[:;]?"
    r".*?\b(?:error|fatal)\s*:\s*(?P<text>.+)"
)
_SUMMARY = re.compile(r"Failures have been detected while processing an MLIR pass pipeline")
_PASS = re.compile(r"Pipeline failed while executing \[[`'](?P<name>[\w:]+)[`']")


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    text: str
    """The first reason in one line, with the compiler's own place; empty if none was found."""
    pass_name: str | None
    """The pass that was running, as the compiler says."""
    excerpt: str
    """The beginning and the end of the output."""

    def explained(self, ending: str) -> str:
        """Joins the reason, the pass, and how the process ended."""
        where = f", in {self.pass_name}" if self.pass_name else ""
        return f"{self.text}{where} ({ending})" if self.text else f"{ending}{where}"


NOTHING = Diagnosis(text="", pass_name=None, excerpt="")


def of_file(path: Path) -> Diagnosis:
    """Searches the first 16 MiB for the reason, and keeps the beginning and the end of the file."""
    try:
        with path.open("rb") as file:
            beginning = file.read(_SEARCHED_BYTES)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(len(beginning), size - _KEPT_BYTES))
            end = file.read()
    except FileNotFoundError:
        return NOTHING
    diagnosis = of_text(beginning.decode(errors="replace"))
    if not end:
        return diagnosis
    return replace(diagnosis, excerpt=_joined(beginning[:_KEPT_BYTES], size - 2 * _KEPT_BYTES, end))


def of_text(text: str) -> Diagnosis:
    text = text.strip()
    telling = [line[:_LINE_CHARACTERS] for line in text.splitlines() if _TELLING.search(line)]
    pass_name = next((match["name"] for line in telling if (match := _PASS.search(line))), None)
    return Diagnosis(text=_first_reason(telling), pass_name=pass_name, excerpt=_excerpt(text))


def _first_reason(lines: Iterable[str]) -> str:
    """An assertion wins over an earlier diagnostic, because the process died of it. An `LLVM ERROR` seldom
    says more than that it is fatal, so the earlier diagnostic comes first.
    """
    diagnostic = ""
    for line in lines:
        for pattern, word in ((_ASSERTION, "Assertion "), (_UNREACHABLE, "unreachable: ")):
            if match := pattern.search(line):
                return _with_place(f"{word}{match['text'] or ''}".strip(), match)
        if match := _LLVM_ERROR.search(line):
            return "; ".join(filter(None, (diagnostic, _with_place(match["text"], match))))
        if not diagnostic and not _SUMMARY.search(line) and (match := _DIAGNOSTIC.search(line)):
            diagnostic = _with_place(match["text"], match)
    return diagnostic


def _with_place(text: str, match: re.Match[str]) -> str:
    """Formats as `Assertion x != y (ConvertToBufferOps.cpp:486)`."""
    places = match.groupdict()
    file = (places.get("file") or "").strip('"')
    place = f" ({Path(file).name}:{places['line']})" if file else ""
    return " ".join(text.split())[:_CHARACTERS] + place


def _excerpt(text: str) -> str:
    content = text.encode()
    if len(content) <= 2 * _KEPT_BYTES:
        return text
    return _joined(content[:_KEPT_BYTES], len(content) - 2 * _KEPT_BYTES, content[-_KEPT_BYTES:])


def _joined(beginning: bytes, left_out: int, end: bytes) -> str:
    first, last = (part.decode(errors="replace").strip() for part in (beginning, end))
    return f"{first}\n[… {left_out} bytes left out …]\n{last}"
