"""What sentences call effects and instructions. Pure."""

from __future__ import annotations

import re

from irdiff.effects.numbering import Event
from irdiff.ir.program import MARK, Act, Operation

_MODIFIERS = re.compile(r"(`(?:cp\.async\.bulk|cp\.async|tcgen05\.\w+|wgmma\.\w+))[^`]*`")
_MAX_CODE = 70


def noun(event: Event) -> str:
    effect = event.effect
    if not effect.space or effect.act not in (Act.LOAD, Act.STORE, Act.ATOMIC):
        return code(event.operation)
    return f"{effect.space} {effect.act}"


def short(event: Event) -> str:
    """Without the modifiers of PTX: `cp.async`, `tcgen05.st`."""
    return _MODIFIERS.sub(r"\1`", noun(event))


def both(one: str, other: str) -> str:
    return f"a {one} and a {other}" if one != other else f"two {one}{'' if one.endswith('`') else 's'}"


_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def unsigned(name: str) -> str:
    return re.sub(r"[us](?=\d|[lg][te]\b)", "", name)


def opposite(name: str) -> str:
    """The comparison that is true where this one is not."""
    return re.sub(
        r"(?<![a-z])([us]?)(lt|le|gt|ge|eq|ne)(?![a-z])",
        lambda match: match[1] + _OPPOSITE[match[2]],
        name,
    )


def code(each: Operation) -> str:
    name = each.name.split(MARK)[0].removeprefix("llvm.").replace("`", "'")
    return f"`{name if len(name) <= _MAX_CODE else name[: _MAX_CODE - 1] + '…'}`"


def detail_of(subject: str) -> tuple[str, str]:
    """A sentence without what is each case's own, and that."""
    words, colon, detail = subject.partition(": ")
    return (words, detail) if colon else (subject, "")
