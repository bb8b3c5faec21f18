"""Resolves base and head, as a user writes them, into two sides: a compiler and the kernels it compiles.

In a checkout of Triton a revision selects the compiler, and the corpus is the same on both sides. In a
repository of kernels (with an `irdiff.toml`) a revision selects the kernels, and the compiler is the same
unless each revision pins its own. Any other kind of side (`triton==3.9.0`) can be combined with both.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Edited, Sides, Toolchain
from irdiff.resolve import (
    extra_packages,
    kernel_repository,
    packs,
    pins,
    programs,
    remote_repositories,
    settings,
    toolchains,
    tools,
    tree_edits,
)
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.kernel_repository import Plan
from irdiff.resolve.substitute import Substitute
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import commits, counting, environments, identity, native, repository
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.counting import CountingToolchain
from irdiff.resolve.toolchains.repository import GitFailed, GitStore, Snapshot
from irdiff.store import key_of


@dataclass(frozen=True, kw_only=True)
class Side:
    toolchain: Toolchain
    corpus: Corpus
    note: str
    """Where the side comes from."""
    warnings: tuple[str, ...] = ()
    substitute: Substitute | None = None
    """The tool that compiles instead of the toolchain, starting from a stored text."""
    counting: CountingToolchain | None = None
    """The same compiler built to count which edited lines run; only at head, if it was built."""
    revision: str = ""
    """The revision of a repository of kernels, as a reader names it: `main 1a2b3c4`."""
    unfollowed_pins: tuple[str, ...] = ()
    """Pins that differ between the sides and that were not followed: `torch in requirements.txt`; only at
    head.
    """
    dropped_targets: tuple[str, ...] = ()
    """Targets that base's `irdiff.toml` names and head's does not; only at head."""


@dataclass(frozen=True, kw_only=True)
class SideOptions:
    repo: Path | None
    """A checkout. The default is the one around the current folder."""
    corpus: Path | None
    """A folder of workloads for both sides. The default is the shipped corpus, or that of `irdiff.toml`."""
    triton: str | None
    """The toolchain of both sides if revisions select kernels."""
    build: bool
    """True if a missing native part may be built."""
    packs: tuple[str, ...] = ()
    """Packs that replace the corpus."""
    packages: tuple[str, ...] = ()
    """Packages that the workloads import, besides Triton and the packages of the repository."""
    exercised: bool = False
    """If true, irdiff looks for a compiler that counts the edited lines that run."""
    programs: tuple[str, ...] = ()
    """Command lines of the repository that launch kernels, instead of workloads."""


def named(
    base: str | None, head: str | None, options: SideOptions, config: Config
) -> tuple[Sides[str], GitStore | None]:
    """Returns sides with defaults applied, and the repository if one is a revision. Raises UsageError."""
    if head and head.startswith("+"):
        if not base:
            raise UsageError(f"{head} has no base", hint=f"irdiff compare triton==3.9.0 {head}")
        base, head = settings.both(Sides(base=base, head=head))
    if base and head and not (is_revision(base) or is_revision(head)):
        return Sides(base=base, head=head), None
    trees = tuple(spec and settings.split(spec)[0] for spec in (base, head))
    for tree in trees:
        if tree and is_revision(tree) and "==" in tree:
            raise UsageError(
                f"{tree!r} is neither a release of Triton nor a revision",
                hint="write a release as triton==3.9.0",
            )
    store = remote_repositories.open_any(trees, options.repo or Path.cwd(), config)
    head = head or (repository.WORKING_TREE if repository.is_dirty(store) else "HEAD")
    tree, _ = settings.split(head)
    if not base and (not is_revision(head) or remote_repositories.parse(tree)):
        raise UsageError(f"{head} has no default base", hint=f"name the base: irdiff compare BASE {head}")
    return Sides(base=base or repository.default_base(store, tree), head=head), store


def resolve_sides(base: str | None, head: str | None, options: SideOptions, config: Config) -> Sides[Side]:
    """Raises UsageError, ToolchainError, CorpusError."""
    specs, store = named(base, head, options, config)
    if store is None and _has_own_kernels(options):
        store = repository.open_store(options.repo or Path.cwd(), config)
    if store is None and options.programs:
        store = _folder(options, config)
    if store is None:
        kernels = load_corpus(options, config)
        by_spec = toolchains.resolve_all(specs, config)
        return specs.map(lambda spec: _side(by_spec[spec], kernels, options.packages, config))
    resolver = Resolver(store, options, config)
    if any(map(is_revision, specs)):
        sides = Sides(base=resolver.side(specs.base, specs.head), head=resolver.side(specs.head, specs.base))
    else:
        sides = specs.map(resolver.side)
    trees = specs.map(lambda spec: settings.split(spec)[0])
    sides = resolver.with_pins(resolver.with_edits(sides, trees), trees)
    return resolver.with_warnings(resolver.with_dropped_targets(sides, trees))


def is_revision(spec: str) -> bool:
    return not spec.startswith(("triton==", "wheel:", "python:", *tools.KINDS))


def _has_own_kernels(options: SideOptions) -> bool:
    """True if the current folder belongs to a repository of kernels, and no other kernels are named."""
    if options.corpus is not None or options.packs:
        return False
    here = (options.repo or Path.cwd()).absolute()
    top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    return top is not None and (bool(options.programs) or (top / kernel_repository.FILE).is_file())


def _folder(options: SideOptions, config: Config) -> GitStore:
    """Opens the repository, or the plain folder, of programs that two releases run."""
    place = options.repo or Path.cwd()
    try:
        return repository.open_store(place, config)
    except GitFailed:
        raise
    except UsageError:
        return repository.open_folder(place, config)


def _no_program(options: SideOptions, given_sides: str) -> None:
    if options.programs:
        raise UsageError(
            f"--program needs two revisions of a repository of kernels, not {given_sides}",
            hint="irdiff compare main HEAD --program 'bench/run.py --small'; of two releases: irdiff capture "
            "bench/run.py, then irdiff compare … --corpus irdiff-captured",
        )


def shared_corpus(spec: str, options: SideOptions, config: Config) -> str:
    """Returns the digest of the kernels that all versions of a series share; empty if each version has its
    own.

    `spec` is one of the versions. No toolchain is installed. Raises UsageError, CorpusError.
    """
    if is_revision(spec) or _has_own_kernels(options):
        store = repository.open_store(options.repo or Path.cwd(), config)
        here = spec if is_revision(spec) else repository.WORKING_TREE
        snap = remote_repositories.snapshot(here, store, config)
        if not checkouts.is_triton(snap, config):
            plan = _plan(snap, options, config)
            return "" if is_revision(spec) else _kernels(snap, plan, options, config).digest
    return load_corpus(options, config).digest


def _kernels(
    snap: Snapshot, plan: Plan, options: SideOptions, config: Config, other: Snapshot | None = None
) -> Corpus:
    if commands := options.programs or plan.program:
        return programs.corpus_of(snap, plan, commands, config, other)
    return kernel_repository.corpus_of(snap, plan, config, other)


def _plan(snap: Snapshot, options: SideOptions, config: Config) -> Plan:
    """`--program` needs no `irdiff.toml`, but uses an existing one."""
    if options.programs and not kernel_repository.has_plan(snap, config):
        return programs.plan_without_file(snap, config)
    return kernel_repository.plan_of(snap, config)


def load_corpus(options: SideOptions, config: Config) -> Corpus:
    shipped = config.shipped / "corpus"
    corpus = packs.load(options.corpus or shipped, options.packs)
    return replace(corpus, self_contained=corpus.root.is_relative_to(shipped.absolute()))


def _side(
    toolchain: Toolchain,
    kernels: Corpus,
    requirements: Sequence[str],
    config: Config,
    note: str = "",
    revision: str = "",
) -> Side:
    """Adds the packages that the corpus needs next to this toolchain."""
    corpus = packs.install(kernels, toolchain, config)
    return Side(
        toolchain=toolchain,
        corpus=extra_packages.added_to(corpus, toolchain, requirements, config),
        note="; ".join(filter(None, (note, packs.note(kernels), extra_packages.note(requirements)))),
        warnings=toolchain.notes,
        revision=revision,
    )


class Resolver:
    """Resolves a compiler or a corpus that two sides share once."""

    def __init__(self, store: GitStore, options: SideOptions, config: Config) -> None:
        self.store = store
        self.options = options
        self.config = config
        self._checkouts: dict[str, Checkout] = {}
        self._plans: dict[str, Plan] = {}
        self._resolve = cache(partial(toolchains.resolve, config=config))

    def side(self, spec: str, other: str = repository.WORKING_TREE) -> Side:
        """`other` is the other side: a release compiles the kernels of the revision it is compared with."""
        if not is_revision(spec):
            return self._release(spec, other)
        plain, chosen = settings.split(spec)
        side = self._of_revision(plain, settings.split(other)[0])
        return replace(side, toolchain=identity.configured(side.toolchain, chosen, self.config))

    def _of_revision(self, spec: str, other: str) -> Side:
        snap = remote_repositories.snapshot(spec, self.store, self.config)
        if checkouts.is_triton(snap, self.config):
            return self._compiler(snap)
        return self._kernels(snap, other)

    def with_warnings(self, sides: Sides[Side]) -> Sides[Side]:
        """Adds a warning to both sides if their LLVMs differ."""
        pins = {spec: checkout.llvm for spec, checkout in self._checkouts.items()}
        if len(set(pins.values())) < 2:
            return sides
        shown = ", ".join(f"{spec} {(pin or 'none')[:12]}" for spec, pin in pins.items())
        warning = f"ATTENTION: the sides pin different LLVMs ({shown}): changes may be those of LLVM"
        environments.show_progress(warning)
        return sides.map(lambda side: replace(side, warnings=(warning, *side.warnings)))

    def with_edits(self, sides: Sides[Side], specs: Sides[str]) -> Sides[Side]:
        """Finds the compiler that counts the edited lines, if both sides are compilers of this checkout."""
        if not self._checkouts.keys() >= {*specs}:
            return sides
        both = specs.map(self._checkouts.__getitem__)
        counts = counting.find(both, self.config) if self.options.exercised else None
        return replace(sides, head=replace(sides.head, counting=counts))

    def with_pins(self, sides: Sides[Side], specs: Sides[str]) -> Sides[Side]:
        if not self._plans.keys() >= {*specs}:
            return sides
        snaps = specs.map(lambda spec: remote_repositories.snapshot(spec, self.store, self.config))
        plans = specs.map(self._plans.__getitem__)
        followed = snaps.zip(plans).map(self._followed)
        unfollowed = kernel_repository.unfollowed_pins(snaps, plans, followed, self.config)
        return replace(sides, head=replace(sides.head, unfollowed_pins=unfollowed))

    def with_dropped_targets(self, sides: Sides[Side], specs: Sides[str]) -> Sides[Side]:
        if not self._plans.keys() >= {*specs}:
            return sides
        base, head = (self._plans[spec].targets for spec in specs)
        dropped = tuple(name for name in base if name not in head)
        return replace(sides, head=replace(sides.head, dropped_targets=dropped))

    def _followed(self, side: tuple[Snapshot, Plan]) -> frozenset[str]:
        names = kernel_repository.followed_pins(*side, self._chosen(side[1]), self.config)
        return names - {"triton"} if self.options.triton else names

    def _chosen(self, plan: Plan) -> tuple[str, ...]:
        return *self.options.packages, *programs.packages_of(self.options.programs or plan.program)

    def _release(self, spec: str, other: str) -> Side:
        toolchain = self._resolve(spec)
        snap = remote_repositories.snapshot(settings.split(other)[0], self.store, self.config)
        if self.options.corpus is not None or self.options.packs or checkouts.is_triton(snap, self.config):
            _no_program(self.options, spec)
            return _side(toolchain, self._corpus, self.options.packages, self.config)
        plan = _plan(snap, self.options, self.config)
        return self._with_kernels(toolchain, snap, plan, None, f"kernels of {snap.label}")

    def _compiler(self, snap: Snapshot) -> Side:
        checkout = self._checkouts[snap.spec] = checkouts.read(snap, self.config)
        _no_program(self.options, snap.label)
        environments.show_progress(f"toolchain of {snap.label}")
        toolchain, note = commits.toolchain_of(checkout, self.config, build=self.options.build)
        return _side(toolchain, self._corpus, self.options.packages, self.config, note)

    def _kernels(self, snap: Snapshot, other_spec: str) -> Side:
        if self.options.packs:
            raise UsageError(
                f"{snap.label} selects kernels, and so does --pack",
                hint="compare two compilers: irdiff compare triton==3.8.0 triton==3.9.0 --pack NAME",
            )
        plan = self._plans[snap.spec] = _plan(snap, self.options, self.config)
        spec, reason = kernel_repository.toolchain_spec(snap, plan, self.options.triton, self.config)
        toolchain = self._resolve(spec)
        is_tree = is_revision(other_spec)
        other = remote_repositories.snapshot(other_spec, self.store, self.config) if is_tree else None
        note = f"kernels of {snap.label}: {snap.title}; compiler: {spec} ({reason})"
        return self._with_kernels(toolchain, snap, plan, other, note)

    def _with_kernels(
        self, toolchain: Toolchain, snap: Snapshot, plan: Plan, other: Snapshot | None, note: str
    ) -> Side:
        """Combines the kernels of a revision with a toolchain and the packages that the revision needs."""
        kernels = _kernels(snap, plan, self.options, self.config, other)
        wanted = kernel_repository.packages_of(snap, plan, self._chosen(plan), self.config)
        if wanted:
            environments.show_progress(f"packages of {snap.label}: {', '.join(wanted)}")
        return _side(toolchain, kernels, wanted, self.config, note, snap.name)

    @cached_property
    def _corpus(self) -> Corpus:
        return load_corpus(self.options, self.config)


# before anything is installed: what differs, and what toolchains are called


@dataclass(frozen=True, kw_only=True)
class Preflight:
    snapshots: Sides[Snapshot]
    edited: Edited

    @property
    def specs(self) -> tuple[str, str]:
        return self.snapshots.base.spec, self.snapshots.head.spec


def preflight(base: str | None, head: str | None, options: SideOptions, config: Config) -> Preflight | None:
    """Returns None for sides that are no revisions. Raises UsageError."""
    specs, store = named(base, head, options, config)
    has_settings = any(settings.split(spec)[1] for spec in specs)
    if store is None or has_settings or not all(map(is_revision, specs)):
        return None
    snapshots = specs.map(lambda spec: remote_repositories.snapshot(spec, store, config))
    edits = tree_edits.between(snapshots, config)
    is_chosen = bool(options.packs or options.programs)
    if edits is None or (edits.of_kernels and is_chosen):
        return None
    return Preflight(snapshots=snapshots, edited=edits)


def cache_key(base: str, head: str, options: SideOptions, config: Config) -> str:
    """Names the toolchains of both sides before they are installed, for the cache of a CI service. Toolchains
    with equal keys can replace each other; so may some with different keys.
    """
    specs, store = named(base, head, options, config)
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    parts = [_named_by(spec, store, options, config) for spec in specs]
    return key_of("cache/1", python, parts)[:32]


def _named_by(spec: str, store: GitStore | None, options: SideOptions, config: Config) -> object:
    if store is None or not is_revision(spec):
        return spec
    snap = remote_repositories.snapshot(settings.split(spec)[0], store, config)
    if checkouts.is_triton(snap, config):
        return native.key_of_build(checkouts.read(snap, config), config).name
    wanted = (kernel_repository.FILE, "pyproject.toml", *pins.FILES)
    contents = {
        entry.path: entry.content for entry in repository.entries(snap, config) if entry.path in wanted
    }
    return [options.triton, contents]
