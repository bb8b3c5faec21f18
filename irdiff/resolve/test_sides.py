"""Two sides whose corpus is what the tests of a repository launch: `irdiff compare BASE HEAD --tests`.

Each side runs the tests of its own revision with its own frontend. A release runs those of its tag, `v3.9.0`,
or else those of the other side, or else of the working tree. In a checkout of Triton the tests are the
compiler's own.
"""

from __future__ import annotations

import atexit
import shlex
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Sides, Target
from irdiff.resolve import (
    extra_packages,
    kernel_repository,
    programs,
    recorded_tests,
    remote_repositories,
    settings,
    sides,
    test_cases,
)
from irdiff.resolve.recorded_tests import TestSession
from irdiff.resolve.sides import Side, SideOptions
from irdiff.resolve.test_cases import TestCases
from irdiff.resolve.toolchains import checkout, repository
from irdiff.resolve.toolchains.repository import GitStore

_OF_TRITON = ("python/test/unit", "python/test/gluon")
_PACKAGES_OF_TRITON = ("torch", "numpy", "scipy", "pytest", "expecttest", "cloudpickle")
"""Packages that Triton's tests import."""


@dataclass(frozen=True, kw_only=True)
class TestOptions:
    __test__ = False

    paths: tuple[str, ...]
    """All tests if it is empty."""
    sample: int | None
    targets: tuple[Target, ...]


@dataclass(frozen=True, kw_only=True)
class TestSides:
    __test__ = False

    sides: Sides[Side]
    cases: tuple[TestCases, ...]
    """One for each target."""


def resolve(
    base: str | None,
    head: str | None,
    wanted: TestOptions,
    options: SideOptions,
    config: Config,
    say: Callable[[str], None],
) -> TestSides:
    """Raises UsageError, ToolchainError, NothingComparedError."""
    plain, sessions = _sessions(base, head, wanted, options, config)
    cases = [_cases(sessions, target, wanted.sample, config, say) for target in wanted.targets]
    if not any(each.pairs for each in cases):
        raise test_cases.nothing_recorded(cases)
    root = Path(tempfile.mkdtemp(prefix="irdiff-tests-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    corpora = {name: test_cases.corpus(cases, name, root / name) for name, _ in plain.items()}
    return TestSides(
        sides=Sides(
            base=replace(plain.base, corpus=corpora["base"]), head=replace(plain.head, corpus=corpora["head"])
        ),
        cases=tuple(cases),
    )


def recorded(
    spec: str, wanted: TestOptions, options: SideOptions, config: Config, say: Callable[[str], None]
) -> tuple[TestCases, ...]:
    """Returns the tests of one side, for each target, with that side as base and head of the cases."""
    _, both = _sessions(spec, spec, wanted, options, config)
    sessions = Sides(base=both.base, head=both.base)
    return tuple(_cases(sessions, target, wanted.sample, config, say) for target in wanted.targets)


def _sessions(
    base: str | None, head: str | None, wanted: TestOptions, options: SideOptions, config: Config
) -> tuple[Sides[Side], Sides[TestSession]]:
    store = repository.open_store(options.repo or Path.cwd(), config)
    specs, _ = sides.named(base, head, options, config)
    here = remote_repositories.snapshot(repository.WORKING_TREE, store, config)
    if checkout.is_triton(here, config):
        return _of_triton(specs, store, wanted, options, config)
    return _of_kernels(specs, wanted, options, config)


def _cases(
    sessions: Sides[TestSession],
    target: Target,
    sample: int | None,
    config: Config,
    say: Callable[[str], None],
) -> TestCases:
    collections = recorded_tests.matched(
        sessions.map(lambda session: recorded_tests.collected(session, target, config))
    )
    every = {identity for collection in collections for identity in collection.names}
    if not every:
        raise recorded_tests.no_tests(sessions.head, collections.head)
    chosen = set(recorded_tests.sample(every, sample))
    say(f"{target.name}: running {len(chosen):,} of {len(every):,} tests without a GPU")
    recordings = sessions.zip(collections).map(
        lambda side: recorded_tests.record(side[0], target, side[1].within(chosen), config)
    )
    return test_cases.paired(recordings, target, len(every))


def _of_triton(
    specs: Sides[str], store: GitStore, wanted: TestOptions, options: SideOptions, config: Config
) -> tuple[Sides[Side], Sides[TestSession]]:
    plain = sides.resolve_sides(specs.base, specs.head, replace(options, packages=()), config)
    packages = options.packages or _PACKAGES_OF_TRITON
    if not any(extra_packages.name_of(name) == "pytest" for name in packages):
        packages = (*packages, "pytest")

    def session(side: Side, spec: str, other: str) -> TestSession:
        snap = remote_repositories.snapshot(_tree_of(spec, other, store), store, config)
        exported = kernel_repository.exported(snap, config)
        site = extra_packages.site(packages, side.toolchain, config)
        return TestSession(
            toolchain=side.toolchain,
            tree=kernel_repository.copied(exported),
            tree_digest=exported.parent.name,
            imports=(),
            site=site,
            packages_digest=extra_packages.recorded_digest(site.parents[2]),
            paths=wanted.paths or _OF_TRITON,
        )

    return plain, Sides(
        base=session(plain.base, specs.base, specs.head), head=session(plain.head, specs.head, specs.base)
    )


def _tree_of(spec: str, other: str, store: GitStore) -> str:
    """A release has the tests of its tag, if the checkout has it."""
    own, theirs = (settings.split(name)[0] for name in (spec, other))
    tags = [f"v{own.removeprefix('triton==')}"] if own.startswith("triton==") else []
    return next(
        (tree for tree in (own, *tags, theirs) if sides.is_revision(tree) and _exists(tree, store)),
        repository.WORKING_TREE,
    )


def _exists(tree: str, store: GitStore) -> bool:
    if tree == repository.WORKING_TREE or remote_repositories.parse(tree):
        return True
    try:
        repository.commit_of(store, tree)
    except UsageError:
        return False
    return True


def _of_kernels(
    specs: Sides[str], wanted: TestOptions, options: SideOptions, config: Config
) -> tuple[Sides[Side], Sides[TestSession]]:
    """Resolves `pytest PATHS` as a program, which has the tree, packages and imports that its tests need."""
    if options.programs:
        raise UsageError("--tests and --program both say what is launched", hint="give one of them")
    command = shlex.join(["pytest", *wanted.paths])
    plain = sides.resolve_sides(specs.base, specs.head, replace(options, programs=(command,)), config)

    def session(side: Side) -> TestSession:
        packages = side.corpus.packages.get(programs.FAMILY)
        kept = side.corpus.kept
        assert kept is not None
        return TestSession(
            toolchain=side.toolchain,
            tree=side.corpus.root,
            tree_digest=kept.parent.name,
            imports=side.corpus.imports,
            site=packages.site if packages else None,
            packages_digest=packages.digest if packages else "",
            paths=wanted.paths,
        )

    return plain, plain.map(session)
