r"""Comments and strings of every language, read in one pass, and passes over a whole text that several
normalizers share.

A comment may hold a quote and a string the beginning of a comment, so neither can be looked for without the
other: `/* tile of 16" */ add.s32 …; // "` has two comments and an instruction between them. The first of
both that begins decides what the characters after it are, as it does for the assembler.

What a language takes for a comment or string was tried with its own assembler (ptxas of CUDA 13, LLVM's of
Triton 3.9.0) or is read in LLVM's and MLIR's lexers (LLLexer, AsmLexer, MLIR's Lexer). Where that is not
certain nothing is guessed: the text is compared as it is (`UnclearError`). So it is where a string or comment
does not end (on its line: assemblers differ there), where PTX has `\"` (ptxas ends the string, LLVM does
not), where AMDGCN has a lone `'` or a `#` within a line, and with characters that some lexers take for the
end of a line and others do not.

Every pass keeps the number of lines, so that canonical lines can be traced to raw ones. All patterns are
linear in the length of the text: alternatives exclude each other and repeats do not back up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from irdiff.errors import NormalizeError


class UnclearError(Exception):
    """A text that no rule may touch, since it is not certain what it means; it is compared as it is."""


def _language(*tokens: str) -> re.Pattern[str]:
    """A pattern of the tokens. Each begins with a constant character: a search is quick."""
    return re.compile(f"({'|'.join(tokens)})")


_ESCAPED_STRING = r'"(?:[^"\\\n]|\\.)*+["\\\n]'
"""A backslash takes the next character's meaning. What does not end takes the end of its line in."""
_TO_END_OF_LINE = r"[^\n]*+"
_BLOCK_COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?+"

MLIR = _language(_ESCAPED_STRING, f"//{_TO_END_OF_LINE}")
LLVM_IR = _language(r'"[^"\n]*+["\n]', f";{_TO_END_OF_LINE}", _BLOCK_COMMENT)
"""A quote inside of a string is spelled `\\22`. Block comments are known since LLVM 20."""
PTX = _language(r'"(?:[^"\\\n]|\\[^"\n])*+["\\\n]', f"//{_TO_END_OF_LINE}", _BLOCK_COMMENT)
AMDGCN = _language(
    _ESCAPED_STRING,
    f";{_TO_END_OF_LINE}",
    f"//{_TO_END_OF_LINE}",
    _BLOCK_COMMENT,
    f"#{_TO_END_OF_LINE}",
    r"'(?:\\.|[^\\\n])'",
    r"""'[^\n'";/#\\]*+'""",
    "'",
)
"""Characters in single quotes are numbers; longer ones are strings of the metadata."""
SASS = _language(f"//{_TO_END_OF_LINE}", _BLOCK_COMMENT)

KERNEL = "__kernel__"
"""Stands for the name of a text's one kernel; a text that has the word itself keeps its names."""

_PRIVATE_USE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
HIDDEN = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
"""For character classes: the characters that stand for strings."""
_PERHAPS_HIDDEN = re.compile("([^\x00-\ud7ff])")
"""All of `HIDDEN` and a few more: one range is several times faster to look for than three."""
_OTHER_LINE_ENDS = "\r\v\f"


class Strings:
    """Takes comments out of a text and hides each string behind one character, so that no rule can touch it.

    The characters are of Unicode's private use areas, which `check_text` keeps out of the input.
    """

    def __init__(self, language: re.Pattern[str]) -> None:
        self._language = language
        self._points = (point for area in _PRIVATE_USE for point in area)
        self._instead = _Instead(self.hide)
        self._contents: dict[str, str] = {}

    def read(self, text: str) -> str:
        """Hides the strings of whole lines. A string that was seen before gets the same character again.

        Raises UnclearError.
        """
        if any(character in text for character in _OTHER_LINE_ENDS):
            raise UnclearError
        parts = self._language.split(f"{text}\n")
        if self._language == AMDGCN:
            _check_hashes(parts)
        parts[1::2] = map(self._instead.__getitem__, parts[1::2])
        return "".join(parts)[:-1]

    def hide(self, string: str) -> str:
        point = next(self._points, None)
        if point is None:
            raise NormalizeError("this text has more than 137,000 different strings")
        self._contents[chr(point)] = string
        return chr(point)

    def restore(self, text: str) -> str:
        if not self._contents or text.isascii():
            return text
        parts = _PERHAPS_HIDDEN.split(text)
        parts[1::2] = [self._contents.get(part, part) for part in parts[1::2]]
        return "".join(parts)


class _Instead(dict[str, str]):
    """The replacement of each comment and string."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._hide = hide

    def __missing__(self, token: str) -> str:
        instead = ""
        if token[0] in "\"'":
            if len(token) == 1 or token[-1] != token[0]:
                raise UnclearError
            instead = self._hide(token)
        elif token.startswith("/*"):
            if token[-1] != "/":
                raise UnclearError
            instead = " " + "\n" * token.count("\n")
        self[token] = instead
        return instead


def _check_hashes(parts: list[str]) -> None:
    """`#` begins a comment where a statement could begin; elsewhere it may be anything."""
    for index in range(1, len(parts), 2):
        if parts[index][0] == "#":
            _, line_end, before = parts[index - 1].rpartition("\n")
            if before.strip(" \t") or not (line_end or index == 1):
                raise UnclearError


def without_comments(language: re.Pattern[str], text: str) -> str:
    """The text with nothing but its comments taken out; as it is where they are not certain."""
    strings = Strings(language)
    try:
        return strings.restore(strings.read(text))
    except UnclearError:
        return text


def blank_out(match: re.Match[str]) -> str:
    """Replacement that leaves nothing of a match but its line breaks."""
    return "\n" * match.group().count("\n")


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
