"""One name for each function that a text defines for itself alone.

`kernels.scale__fp32` → `function__0`, in the order of definitions, at each place that has the name. What a
text defines and shows to nobody outside has a free name: the same other name everywhere means the same. The
renaming is one to one over the whole text, so it is right whatever scopes the language has.

Some names mean something to a compiler all the same, however they are defined: `__nv_sinf`, `_Z3sinf`,
`llvm.*`, `memcpy`. So only names of the form that Triton gives its functions are free: with two underscores
within (`mangle_fn` in Triton's code_generator.py puts them before the types), none at the beginning.
And inline assembly names what it likes: what is a word of it keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_FUNCTION = "function__"
_WORD = re.compile(r"[\w.$]+")
_PRIVATE = re.compile(r"^(?:\$L_*|\.L)")
_CANONICAL = re.compile(rf"{_FUNCTION}\d+")


def rename_functions(internal: Iterable[str], others: Iterable[str]) -> dict[str, str]:
    """New names by old ones; empty if another name of the text could be confused with one of them."""
    free = [name for name in dict.fromkeys(internal) if _is_free(name)]
    if not free or any(map(_CANONICAL.match, set(others) - set(free))):
        return {}
    return {name: f"{_FUNCTION}{number}" for number, name in enumerate(free)}


class Renamed(dict[str, str]):
    """New names: functions are renamed together with what is named after them."""

    def __init__(self, functions: Mapping[str, str], named_after: re.Pattern[str]) -> None:
        """`named_after` matches the name of a parameter or resource, its `function` among it."""
        super().__init__(functions)
        self._named_after = named_after

    def __missing__(self, name: str) -> str:
        match = self._named_after.fullmatch(name)
        function = self.get(match["function"]) if match else None
        self[name] = name
        if match and function:
            self[name] = f"{name[: match.start('function')]}{function}{name[match.end('function') :]}"
        return self[name]


def words(assembly: Iterable[str]) -> set[str]:
    """Each word, also as the name before a backend has spelled it for its assembler."""
    words_of_assembly = {word for text in assembly for word in _WORD.findall(text)}
    return words_of_assembly | {_PRIVATE.sub("", word).replace("_$_", ".") for word in words_of_assembly}


def _is_free(name: str) -> bool:
    return "__" in name and name[0] != "_" and not name.startswith("llvm.")
