"""Commands in comments of a pull request: `/irdiff compare v3.9.0 --tier all`, with a strict grammar.

Anybody can write a comment. Trusted code obeys those of people who may write to the repository, and records
their request in a comment of its own, for one commit. The jobs of the pull request read only that record,
never what people write.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from irdiff.errors import UsageError

KEY = "asked"
"""The key of the comment that holds the record."""
USAGE = """\
/irdiff compare [BASE] [--tier gate|core|extended|all] [--target NAME] [--case PATTERN]

BASE is a branch, tag or commit, or a release as in triton==3.8.0. Without it the pull request is compared
with where it begins, as after every push. --tier, --target and --case can be repeated."""

_COMMAND = re.compile(r"/irdiff(?:[ \t]+(.{0,500}))?[ \t]*")
_BASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/=+~^-]{0,199}")
_WORDS = {
    "--tier": re.compile(r"gate|core|extended|all"),
    "--target": re.compile(r"[a-z0-9][a-z0-9_]{0,39}"),
    "--case": re.compile(r"[A-Za-z0-9_.:@/*?-]{1,200}"),
}
_RECORD = re.compile(r"<!-- irdiff:record ([0-9a-f]{40,64}) ([ -=?-~]{1,4000}) -->")
_MAX_WORDS = 40


@dataclass(frozen=True, kw_only=True)
class CommentCommand:
    base: str | None
    """None for the start of the pull request."""
    tiers: tuple[str, ...] | None
    """None for those that a push compares, an empty tuple for all."""
    targets: tuple[str, ...]
    cases: tuple[str, ...]


def parse(comment: str) -> CommentCommand | None:
    """Returns None for help. Raises UsageError for anything but a command."""
    match = _COMMAND.fullmatch(comment.strip().partition("\n")[0].rstrip("\r"))
    try:
        words = shlex.split(match[1] or "") if match else None
    except ValueError:
        words = None
    if words is None or len(words) > _MAX_WORDS:
        raise UsageError("the comment is no command", hint="/irdiff help")
    match words:
        case [] | ["help", *_]:
            return None
        case ["compare", *rest]:
            return _compared(rest)
        case [first, *_]:
            raise UsageError(f"there is no command {first[:40]!a}", hint="/irdiff help")
    raise AssertionError(words)


def _compared(words: list[str]) -> CommentCommand:
    base = words.pop(0) if words and not words[0].startswith("-") else None
    if base is not None and (not _BASE.fullmatch(base) or ".." in base):
        raise UsageError(f"{base[:80]!a} is no revision or release", hint="/irdiff help")
    values: dict[str, list[str]] = {name: [] for name in _WORDS}
    while words:
        name, _, value = words.pop(0).partition("=")
        if name not in _WORDS:
            raise UsageError(f"there is no option {name[:40]!a}", hint="/irdiff help")
        value = value or (words.pop(0) if words else "")
        if not _WORDS[name].fullmatch(value):
            raise UsageError(f"{name} cannot be {value[:80]!a}", hint="/irdiff help")
        values[name].append(value)
    tiers = () if "all" in values["--tier"] else tuple(values["--tier"]) or None
    return CommentCommand(
        base=base, tiers=tiers, targets=tuple(values["--target"]), cases=tuple(values["--case"])
    )


def record(command: CommentCommand, head: str) -> str:
    """Returns the hidden line that holds a command for one commit."""
    line = f"<!-- irdiff:record {head} {in_words(command)} -->"
    assert _RECORD.fullmatch(line)
    return line


def read(comment: str | None, head: str) -> CommentCommand | None:
    """Returns None if the record is of another commit. The record is checked like a comment."""
    match = _RECORD.search(comment or "")
    return parse(f"/irdiff {match[2]}") if match and match[1] == head else None


def in_words(command: CommentCommand) -> str:
    words = ["compare", *([command.base] if command.base else [])]
    if command.tiers is not None:
        words += [word for tier in command.tiers or ("all",) for word in ("--tier", tier)]
    words += [word for target in command.targets for word in ("--target", target)]
    words += [word for case in command.cases for word in ("--case", case)]
    return " ".join(words)
