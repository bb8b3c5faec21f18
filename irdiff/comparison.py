"""The request of a user, and the comparison that it becomes when both sides are resolved."""

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
    """The request of a user: two sides, the launches and targets, and the options."""

    base: str | None
    head: str | None
    sides: SideOptions
    targets: tuple[Target, ...]
    options: Options
    """The patterns of cases are as the user typed them."""
    command: tuple[str, ...]
    """The words of the command line, which the run records."""
    made: Callable[[], Sides[Side]] | None = None
    """Creates the sides if they are files of IR or tools. None if `base` and `head` name the sides."""
    tests: Callable[[], tuple[TestCases, ...]] = tuple
    """Returns the tests whose launches are the cases. Called after the sides are resolved."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A request with both sides resolved."""

    sides: Sides[Side]
    targets: tuple[Target, ...]
    options: Options
    command: tuple[str, ...]
    expanded_patterns: Mapping[str, tuple[str, ...]] | None = None
    """Maps each `--case` pattern as typed to the full names it expanded to; None until expanded."""
    notes: tuple[str, ...] = ()
    """Notes that are known before the comparison begins. The run keeps them."""
    exercised: bool = False
    """If true, irdiff counts the cases that run edited lines of head's compiler."""
    edited: Edited | None = None
    """How the trees of the two revisions differ; None if a side is no revision."""
    tests: tuple[TestCases, ...] = ()
    """The tests whose launches are the cases, for each target."""

    @property
    def names(self) -> tuple[str, str]:
        """The names of the sides in the name of a run folder."""
        base, head = (side.revision or side.toolchain.spec for side in self.sides)
        return base, head


@dataclass(frozen=True, kw_only=True)
class SameCompiler:
    """Two revisions that are the same compiler, or the same code. Nothing is installed, built or compiled."""

    seen: Preflight
    targets: tuple[Target, ...]
    options: Options
    command: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str]:
        return self.seen.specs


def resolved(request: Request, config: Config, say: Callable[[Edited], None]) -> Comparison | SameCompiler:
    """Resolves and installs both sides. Before it does, it calls `say` with the difference between two
    revisions.

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
