"""Finds the functions of a Python file that an edit changes, wherever they stand.

A function is told from others by its qualified name and by its order among functions of that name. Its text
is its syntax tree without positions and docstrings, below the heads of the classes and conditions around it.
Nobody can say which launches a statement outside of functions matters to. So a function whose text is the
same counts as changed if a statement of its file differs that binds, or touches, a name that it uses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from irdiff.coverage.file_functions import DefinedFunction, Place, functions_of
from irdiff.model import Sides
from irdiff.words import first_few

_NAMES_SHOWN = 2


@dataclass(frozen=True, kw_only=True)
class ChangedFunction:
    """A function that differs between the sides, or a kernel that base does not have."""

    name: str
    """With its class: `SwiGLU.forward`. With `(uses CONFIGS)` if only what it uses differs."""
    places: Sides[tuple[Place, ...]]
    """If it runs at one of them, it was compared."""


def changed_functions(base: bytes, head: bytes) -> list[ChangedFunction]:
    """Raises SyntaxError if this Python cannot parse head."""
    theirs = _by_name(functions_of(head))
    try:
        ours = _by_name(functions_of(base))
    except SyntaxError:
        return [_changed(name, [], [each]) for name, functions in theirs.items() for each in functions]
    return [
        changed for name, functions in theirs.items() for changed in _differing(ours.get(name, []), functions)
    ]


def _differing(
    ours: Sequence[DefinedFunction], theirs: Sequence[DefinedFunction]
) -> Iterator[ChangedFunction]:
    """All have one name. Another definition of a name that base has is a change of it."""
    name = theirs[0].name
    if not ours:
        yield from (_changed(name, [], [function]) for function in theirs if function.may_be_kernel)
        return
    texts, others = ([function.text for function in side] for side in (ours, theirs))
    for kind, a, b, c, d in SequenceMatcher(None, texts, others, autojunk=False).get_opcodes():
        if kind == "delete":  # the remaining ones took its place
            yield _changed(name, [], theirs)
        for index in range(c, d):
            partner = ours[a + index - c : b][:1]
            names = _used_names_that_differ(partner[0], theirs[index]) if kind == "equal" else []
            if kind != "equal" or names:
                shown = [used for used in names if used != theirs[index].own_name]
                uses = f" (uses {first_few(shown, _NAMES_SHOWN)})" if shown else ""
                yield _changed(name + uses, partner, [theirs[index]])


def _changed(
    name: str, ours: Iterable[DefinedFunction], theirs: Iterable[DefinedFunction]
) -> ChangedFunction:
    places = Sides(base=ours, head=theirs).map(
        lambda side: tuple(place for function in side for place in function.places)
    )
    return ChangedFunction(name=name, places=places)


def _used_names_that_differ(ours: DefinedFunction, theirs: DefinedFunction) -> list[str]:
    base, head = ours.statements, theirs.statements
    names = {name for name in base.keys() | head.keys() if base.get(name) != head.get(name)}
    return sorted({name.removeprefix(".") for name in names})


def _by_name(functions: Iterable[DefinedFunction]) -> dict[str, list[DefinedFunction]]:
    named: dict[str, list[DefinedFunction]] = defaultdict(list)
    for function in functions:
        named[function.name].append(function)
    return named
