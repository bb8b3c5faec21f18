"""What of a recorded command line must be typed again, so that the same is compared in the same way.

A run records the words that its user typed. Here they are sorted and never obeyed: they may be anybody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irdiff.run.run_list import LAST

KEPT = {
    "--repo", "--targets-dir", "--corpus", "--pack", "--with", "--program", "--configs", "--option",
    "--from", "--ptxas", "--stages",
}  # fmt: skip
"""With a value: they choose the cases, what they are compiled by, and what the verdict rests on."""
KEPT_FLAGS = {"--ir"}
DROPPED = {
    "--case", "--tier", "--target", "--shard", "--triton", "--python", "--out", "--known", "--limit",
    "--json", "--markdown", "--html", "--cache", "--store-mode", "--cluster", "--jobs", "-j", "--timeout",
    "--memory",
}  # fmt: skip
"""With a value: the report names the case, the target and the compiler; the others depend on the machine."""
DROPPED_FLAGS = {
    "--exercised", "--no-build", "--bump", "--no-cache", "--recheck", "--no-recheck", "--attribute",
    "--no-attribute", "--quiet", "-q", "--exit-code",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Typed:
    sides: tuple[str, ...]
    kept: tuple[str, ...]
    """Options and their values, as they were typed."""

    @property
    def is_ir(self) -> bool:
        return "--ir" in self.kept


def read(words: Sequence[str]) -> Typed | None:
    """The words after the name of the command, sorted into sides and options.

    None where one is not known, or means something else by the time that it is typed again.
    """
    sides, kept = list[str](), list[str]()
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in KEPT | DROPPED:
            value = value if equals else next(left, "")
            if name == "--from" and value.partition(":")[0] == LAST:
                return None
            kept += [name, value] if name in KEPT else []
        elif name in KEPT_FLAGS | DROPPED_FLAGS:
            kept += [name] if name in KEPT_FLAGS else []
        elif word == "--":
            sides += left
        elif not word.startswith("-") or word == "-":
            sides.append(word)
        elif not (word.startswith("-j") and word[2:].isdigit()):
            return None
    return Typed(sides=tuple(sides), kept=tuple(kept))
