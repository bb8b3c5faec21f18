"""What is compared: what a user asked for, and the same with both sides resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irdiff.backends.stages import check_compared
from irdiff.config import Config
from irdiff.model import Edited, Options, Sides, Target
from irdiff.resolve.sides import Preflight, Side, SideOptions, preflight, resolve_sides
from irdiff.resolve.test_cases import TestCases


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asked for: two sides, which launches of which targets, and how."""

    base: str | None
    head: str | None
    sides: SideOptions
    targets: tuple[Target, ...]
    options: Options
    """With patterns of cases as they were typed."""
    command: tuple[str, ...]
    """The words themselves, for the record."""
    made: Callable[[], Sides[Side]] | None = None
    """Makes the sides where they are no compilers of their own: files of IR, tools."""
    tests: Callable[[], tuple[TestCases, ...]] = tuple
    """The tests whose launches are the cases; called once the sides are made."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is compared: two sides, the targets, and what the user chose."""

    sides: Sides[Side]
    targets: tuple[Target, ...]
    options: Options
    command: tuple[str, ...]
    expanded_patterns: Mapping[str, tuple[str, ...]] | None = None
    """Maps each `--case` pattern as typed to the full names it expanded to; None until expanded."""
    notes: tuple[str, ...] = ()
    """What is known before it begins, for the run's own notes."""
    exercised: bool = False
    """Whether the cases are counted that run the edited lines of head's compiler."""
    edited: Edited | None = None
    """What the trees of two revisions say, where both sides are such."""
    tests: tuple[TestCases, ...] = ()
    """The tests whose launches are the cases, for each target."""

    @property
    def names(self) -> tuple[str, str]:
        """Of the sides, for a run folder."""
        base, head = (side.revision or side.toolchain.spec for side in self.sides)
        return base, head


@dataclass(frozen=True, kw_only=True)
class SameCompiler:
    """Two revisions that make the same compiler, or have the same code: nothing is installed, built or
    compiled.
    """

    seen: Preflight
    targets: tuple[Target, ...]
    options: Options
    command: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str]:
        return self.seen.specs


def resolved(request: Request, config: Config, say: Callable[[Edited], None]) -> Comparison | SameCompiler:
    """Both sides, installed. `say` is told what differs between two revisions before anything is made of
    them.

    Raises UsageError, ToolchainError, CorpusError.
    """
    check_compared(request.options.stages, (target.backend for target in request.targets))
    seen = preflight(request.base, request.head, request.sides, config) if request.made is None else None
    if seen:
        say(seen.edited)
        if seen.edited.identical and request.options.use_cache:
            return SameCompiler(
                seen=seen, targets=request.targets, options=request.options, command=request.command
            )
    make = request.made or (lambda: resolve_sides(request.base, request.head, request.sides, config))
    return Comparison(
        sides=make(),
        targets=request.targets,
        options=request.options,
        command=request.command,
        exercised=request.sides.exercised,
        edited=seen.edited if seen and not seen.edited.identical else None,
        tests=request.tests(),
    )
