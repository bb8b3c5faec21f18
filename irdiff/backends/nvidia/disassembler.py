"""Texts of instructions, by the nvdisasm of an installed toolchain: each distinct word once.

Starting nvdisasm takes 0.4 s, and disassembling 15 µs an instruction (22 in a cubin, whose control flow it
analyzes too). So the words of all kernels that are to be counted go through it together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from irdiff import process
from irdiff.backends import machine_code_text
from irdiff.backends.nvidia import encodings
from irdiff.errors import NormalizeError
from irdiff.ir.sass import instructions
from irdiff.ir.sass.instructions import WORD_BYTES, SassFunction

MAX_CODE_BYTES = 16 * instructions.MAX_INSTRUCTIONS
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:\{ )?([^;]*?)\s*;", re.M)
_REFUSED = re.compile(r"at address 0x([0-9a-f]+)")
_TRIES = 3
_OWN_PLACE = re.compile(r"^(?:@!?U?P[T0-9]+ )?(?:BRA|BSSY|CALL|LEPC|RET|JMP|WARPSYNC|SSY|BRX)\b")
_PLACE = re.compile(r"-?0x[0-9a-f]+$")
_WITH_EXTENSIONS = frozenset({90, 100, 101, 103, 110, 120, 121})


class Disassembler:
    """Keeps the texts of all words that it has seen."""

    def __init__(self, nvdisasm: Path) -> None:
        self._nvdisasm = nvdisasm
        self._texts: dict[int, dict[int, str]] = {}
        """Architecture → word without its control bits → text."""

    def prepare(self, arch: int, codes: Iterable[bytes]) -> None:
        """Disassembles the words of these kernels that are new, together."""
        texts = self._texts.setdefault(arch, {})
        missing: dict[int, bytes] = {}
        for code in codes:
            if len(code) > MAX_CODE_BYTES:
                continue
            for place, (word, _) in enumerate(encodings.words(code)):
                if word not in texts and word not in missing:
                    start = place * WORD_BYTES
                    missing[word] = code[start : start + WORD_BYTES]
        self.texts(arch, missing)

    def texts(self, arch: int, words: Mapping[int, bytes]) -> Mapping[int, str]:
        """Texts of all words so far, and of these; those that are no instructions have none.

        words: by what the instruction does, its content.
        """
        texts = self._texts.setdefault(arch, {})
        missing = {word: content for word, content in words.items() if word not in texts}
        if missing:
            texts.update(self._disassembled(arch, missing))
        return texts

    def read(self, arch: int, binary: bytes, kernel: str) -> SassFunction:
        """Raises NormalizeError for a binary without the kernel, or with words that are no instructions."""
        code = encodings.code_of(binary, kernel)
        if len(code) > MAX_CODE_BYTES:
            raise NormalizeError(
                f"{kernel} has {len(code) // WORD_BYTES:,} instructions; at most "
                f"{instructions.MAX_INSTRUCTIONS:,} are counted"
            )
        words = encodings.words(code)
        texts = self._texts.setdefault(arch, {})
        if any(word not in texts for word, _ in words):
            self.prepare(arch, [code])
        lines = [(texts.get(word), control) for word, control in words]
        for place, (text, _) in enumerate(lines):
            if text is None:
                raise NormalizeError(f"nvdisasm knows no instruction at {place * WORD_BYTES:#x} of {kernel}")
        return instructions.read(kernel, [(text, control) for text, control in lines if text is not None])

    def _disassembled(self, arch: int, words: dict[int, bytes]) -> dict[int, str]:
        """Asks again without words that are no instructions: with one of them, nvdisasm prints nothing."""
        for _ in range(_TRIES):
            printed, refused = self._ask(arch, words.values())
            if not refused:
                return {
                    word: _relative(printed[n * WORD_BYTES], n * WORD_BYTES)
                    for n, word in enumerate(words)
                    if n * WORD_BYTES in printed
                }
            listed = enumerate(words.items())
            words = {word: content for n, (word, content) in listed if n * WORD_BYTES not in refused}
        return {}

    def _ask(self, arch: int, words: Iterable[bytes]) -> tuple[dict[int, str], set[int]]:
        """Texts by place, and the places of words that are no instructions."""
        name = f"SM{arch}{'a' if arch in _WITH_EXTENSIONS else ''}"
        try:
            printed = machine_code_text.disassembled(self._nvdisasm, b"".join(words), "-b", name, "-ndf")
        except process.CommandFailed as error:
            return {}, {int(at, 16) for at in _REFUSED.findall(error.stderr)}
        except (process.TimeoutExpired, OSError):
            return {}, set()
        return {int(at, 16): text for at, text in _LINE.findall(printed)}, set()


def _relative(text: str, address: int) -> str:
    """Without register reuse, and with a place relative to the instruction's own: `BRA .-0x40`."""
    text = " ".join(text.replace(".reuse", "").split())
    if _OWN_PLACE.match(text):
        return _PLACE.sub(lambda place: f".{int(place.group(), 16) - address:+#x}", text)
    return text
