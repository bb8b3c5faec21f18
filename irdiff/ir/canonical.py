"""The result types of normalization and the guards that every normalizer passes a text through."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from irdiff.errors import NormalizeError
from irdiff.findings import Finding
from irdiff.ir.lexing import HIDDEN, Strings

MAX_TEXT_BYTES = 64 << 20
"""Longer texts are refused: ten times the longest IR seen, and still normalized within seconds."""

NORMALIZER_VERSION = "10"
"""Raised with any change of any rule: runs of different versions are not merged, and not known to each other.
What is kept in the store is kept by the content of these modules."""

_CONTROL = re.compile(f"[\x00-\x08\x0e-\x1f{HIDDEN}]")
_ASCII_CONTROL = bytes([*range(0x09), *range(0x0E, 0x20)])
_PART = 1 << 20
_REPLACEMENT_SHARE = 100


@dataclass(frozen=True, kw_only=True)
class CanonicalText:
    """One text in canonical form, with the text itself."""

    ir: str
    raw: str
    lines: tuple[str, ...]
    """All that can reach the machine code, in the order of the raw text."""
    numbers: tuple[int, ...]
    """For each line the number of the raw line that it came from, from 1; 0 where it has none."""
    header: Mapping[str, str]
    """Lines that may differ between two toolchains although the code is the same; compared separately."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the lines."""
        return sha256("".join(f"{line}\n" for line in self.lines).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class TextEquality:
    equal: bool
    header_equal: bool
    """Also of texts that are not equal."""
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class Printed:
    """LLVM IR as one LLVM reads and prints it, or why it does not."""

    text: str | None
    opaque: Sequence[str] = ()
    """Intrinsics that it knows with another signature, read as functions of which it knows nothing."""
    why_not: str = ""
    """`unreadable`, `too-long`, or `died`, `timeout`, `unavailable`, which another attempt may cure."""


Reprint = Callable[[str], Printed]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Canonical text still aligned to the raw text.

    Row i is what raw line i + 1 became: nothing, one line, or several joined by newlines. Lines that no
    raw line stands for, or that were sorted, are in `tail` with their raw line number (0: none).
    """

    body: list[str]
    tail: list[tuple[int, str]]
    header: dict[str, str]

    def restored(self, strings: Strings) -> Rows:
        """With the strings that were hidden while the rows were made."""
        return Rows(
            body=strings.restore("\0".join(self.body)).split("\0"),
            tail=[(number, strings.restore(line)) for number, line in self.tail],
            header={strings.restore(key): strings.restore(value) for key, value in self.header.items()},
        )

    def canonical(self, ir: str, raw: str) -> CanonicalText:
        lines_of_body = [(number, text) for number, text in enumerate(self.body, 1) if text]
        numbered = [
            (number, line) for number, text in (*lines_of_body, *self.tail) for line in text.split("\n")
        ]
        return CanonicalText(
            ir=ir,
            raw=raw,
            lines=tuple(line for _, line in numbered),
            numbers=tuple(number for number, _ in numbered),
            header=self.header,
        )


def check_text(ir: str, text: str) -> None:
    """Refuse what no compiler prints: NormalizeError."""
    if len(text) > MAX_TEXT_BYTES:
        size_mb = len(text) / 1e6
        raise NormalizeError(
            f"{ir}: a text of {size_mb:.0f} MB is larger than the limit of {MAX_TEXT_BYTES / 1e6:.0f} MB",
            hint="compile a smaller case; no Triton kernel is known to need this much",
        )
    if _is_binary(text):
        raise NormalizeError(
            f"{ir}: this is binary, not text",
            hint="pass a text artifact; `irdiff.backends` reads binaries",
        )


def _is_binary(text: str) -> bool:
    if text.isascii():  # many times faster than the pattern; in parts, for these are copies
        parts = (text[start : start + _PART].encode() for start in range(0, len(text), _PART))
        return any(len(part.translate(None, _ASCII_CONTROL)) < len(part) for part in parts)
    return bool(_CONTROL.search(text)) or text.count("\ufffd") * _REPLACEMENT_SHARE > len(text)


def unrecognized(ir: str, expected: str) -> NormalizeError:
    return NormalizeError(
        f"{ir}: nothing in this text is recognized ({expected} is missing)",
        hint="check that the artifact is of the stated IR and is not cut off",
    )


class Numbering(dict[str, str]):
    """Names numbered in the order they are first asked for: `numbering[raw] -> canonical`."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def __missing__(self, name: str) -> str:
        canonical = self[name] = f"{self._prefix}{len(self)}"
        return canonical
