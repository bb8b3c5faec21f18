"""The flow, readable top to bottom:

resolve sides → capture launches → pair them → compile → normalize → compare → group → run folder
"""

from __future__ import annotations

import datetime
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import irdiff
from irdiff import attribution, edit_digest, kernel_sources, normalize, reach, run_folder
from irdiff import corpus as corpora
from irdiff.attribution import Attributor, Subject
from irdiff.catalogs import NOTHING, Catalog, Wanted
from irdiff.change_edits import CaseDescriber
from irdiff.compare import cases as case_forms
from irdiff.compare import grouping, launchers, pairing, radius, renames
from irdiff.compare.grouping import Description
from irdiff.comparison import CaseComparer
from irdiff.compilation import Compiler
from irdiff.config import Config
from irdiff.errors import NothingComparedError
from irdiff.model import (
    SCHEMA,
    Case,
    ChangeGroup,
    Launch,
    Pair,
    Reach,
    Revision,
    Run,
    Sides,
    Target,
    Verdict,
)
from irdiff.parallel import Progress, Report, in_parallel
from irdiff.replaying import Replayer
from irdiff.sides import Side
from irdiff.store import Store
from irdiff.worker_requests import Requests
from irdiff.workers import Workers


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user may choose of one comparison."""

    targets: tuple[Target, ...]
    cases: tuple[str, ...]
    """Patterns `family/workload:label@target`; none means all."""
    tiers: tuple[str, ...]
    stages: tuple[str, ...]
    """Stages to compare; none means all that the backend has."""
    shortcut: bool
    """Whether equal inputs of equal toolchains are taken as equal without compiling."""
    recheck: bool
    """Whether every changed case is compiled again to see if each side agrees with itself."""
    shard: tuple[int, int]
    """(k, n): the k-th of n parts of the cases, from 1."""
    command: tuple[str, ...]
    attribute: bool = True
    """Whether the pass and the components behind each change are looked for: about one more compilation
    of the changed cases."""


def compare(base: Side, head: Side, options: Options, config: Config, out: Path, report: Report) -> Run:
    """Compares two sides and writes the run folder `out`.

    Raises NothingComparedError where not one case could be compared, StoreError, ToolchainError.
    """
    started = time.monotonic()
    store = Store(config.store)
    with _workers(config) as workers:
        wanted = Wanted(tiers=options.tiers, cases=options.cases)
        compiler = Compiler(Requests(config, workers), store, wanted, reuse=options.shortcut)
        captured = _capture(base, head, options, compiler, config, report)
        matched = _matched(pair_launches(captured, options), base, head)
        pairs = _shard(matched, options.shard)
        comparer = CaseComparer(compiler, store, base, head, options)
        describer = CaseDescriber(store)
        judged = _compare_all(pairs, comparer, None if options.attribute else describer, config, report)
        if options.attribute:
            attributor = Attributor(
                store, Replayer(config, store, workers, wanted), Sides(base=base, head=head)
            )
            judged = _attribute(judged, attributor, describer, options, config, report)
        environment = _environment(config, workers)
    cases, groups = _group(judged, describer)
    run = _assemble_run(base, head, options, cases, pairs, environment, time.monotonic() - started)
    notes = (*run.notes, *_layer_notes(base, head, options, compiler))
    run = replace(run, groups=groups, reach=_reach(base, head, matched, captured), notes=notes)
    digests = [
        artifact.digest
        for case in run.cases
        if case.verdict not in (Verdict.UNCHANGED, Verdict.UNSUPPORTED)
        for side in (case.artifacts.base, case.artifacts.head)
        for artifact in side.values()
    ]
    run_folder.write(out, run, store, digests)
    return run


@contextmanager
def _workers(config: Config) -> Iterator[Workers]:
    workers = Workers(config)
    try:
        yield workers
    finally:
        workers.close()


# capture


@dataclass(frozen=True, kw_only=True)
class Captured:
    """What one workload launches for one target, on both sides."""

    workload: str
    target: Target
    catalogs: Sides[Catalog]


def _capture(
    base: Side, head: Side, options: Options, compiler: Compiler, config: Config, report: Report
) -> list[Captured]:
    names = sorted({*corpora.select(base.corpus, options.cases), *corpora.select(head.corpus, options.cases)})
    rows = list(itertools.product(names, options.targets))
    jobs = [(row, which) for row in range(len(rows)) for which in ("base", "head")]  # both start at once

    def one(job: tuple[int, str]) -> tuple[tuple[int, str], Catalog]:
        row, which = job
        return job, _catalog(compiler, base if which == "base" else head, *rows[row])

    found = dict(in_parallel(one, jobs, config.jobs, "capture", report))
    return [
        Captured(
            workload=name, target=target, catalogs=Sides(base=found[row, "base"], head=found[row, "head"])
        )
        for row, (name, target) in enumerate(rows)
    ]


def _catalog(compiler: Compiler, side: Side, workload: str, target: Target) -> Catalog:
    if workload not in side.corpus.workloads:
        return NOTHING
    return compiler.catalog(side.toolchain, side.corpus, workload, target)


def pair_launches(catalogs: Sequence[Captured], options: Options) -> list[Pair]:
    """Launches of both sides with the same id and target, those of one side only, and those that failed."""
    pairs = []
    for row in catalogs:
        base, head = row.catalogs.base, row.catalogs.head
        for matched in pairing.match([*base.launches, *base.failures], [*head.launches, *head.failures]):
            launch_id, ours, theirs = matched.id, matched.base, matched.head
            if not corpora.selects(options.cases, launch_id, row.target.name):
                continue
            known = next((x for x in (theirs, ours) if isinstance(x, Launch)), None)
            if options.tiers and known and known.tier not in options.tiers:
                continue
            if not any(side.expected for side in (ours, theirs) if side):
                continue  # declared as not meant for this target: `irdiff corpus check` looks at those
            pairs.append(
                Pair(
                    id=f"{launch_id}@{row.target.name}",
                    launch_id=launch_id,
                    target=row.target,
                    base=ours,
                    head=theirs,
                    supported=Sides(base=base.supported, head=head.supported),
                )
            )
        if not base.supported and not head.supported:
            pairs.append(case_forms.unsupported_pair(row.workload, row.target))
    return sorted(pairs, key=lambda pair: pair.id)


def _matched(pairs: list[Pair], base: Side, head: Side) -> list[Pair]:
    """Kernels that one revision of a corpus has under another name are one case."""
    if base.corpus.digest == head.corpus.digest:
        return pairs
    return renames.join(
        pairs,
        lambda launch: kernel_sources.source_of(base.corpus, launch),
        lambda launch: kernel_sources.source_of(head.corpus, launch),
    )


def _shard(pairs: list[Pair], shard: tuple[int, int]) -> list[Pair]:
    k, n = shard
    return [pair for index, pair in enumerate(pairs) if index % n == k - 1]


# compare


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A compared case, with what grouping needs of it once nothing more will be known of the case."""

    case: Case
    description: Description | None

    @property
    def id(self) -> str:
        return self.case.id


def _compare_all(
    pairs: Sequence[Pair],
    comparer: CaseComparer,
    describer: CaseDescriber | None,
    config: Config,
    report: Report,
) -> list[Judged]:
    """In the order of their ids; described by `describer`, where there is one."""

    def one(pair: Pair) -> Judged:
        case = comparer.compare(pair)
        case = replace(case, edit=edit_digest.of_case(case, pair, comparer.store))
        if describer is None or case.verdict not in grouping.GROUPED:
            return Judged(case=case, description=None)
        return Judged(case=case, description=describer.describe(case, None))  # beside the compilers

    def with_reuse(step: Progress) -> None:
        taken = comparer.compiler.taken_from_store
        report(replace(step, detail=f"{taken} sides from the store" if taken else step.detail))

    # one thread more than compilers: normalizing one case overlaps with compiling the next
    judged = in_parallel(one, pairs, config.jobs + 1, "compare", with_reuse)
    return sorted(judged, key=lambda row: row.id)


# origin and groups


def _attribute(
    judged: Sequence[Judged],
    attributor: Attributor,
    describer: CaseDescriber,
    options: Options,
    config: Config,
    report: Report,
) -> list[Judged]:
    """The cases with where their change comes from, described between the texts that show it best."""

    def one(subject: Subject) -> Judged:
        found = attributor.attribute(subject)
        case = replace(subject.case, origin=found.origin)
        return Judged(case=case, description=describer.describe(case, found.edit))  # beside the compilers

    targets = {target.name: target for target in options.targets}
    subjects = [attribution.subject_of(row.case, targets[row.case.target]) for row in judged]
    rows = in_parallel(one, list(filter(None, subjects)), config.jobs + 1, "attribute", report)
    done = {row.id: row for row in rows}
    return [done.get(row.id, row) for row in judged]


def _group(
    judged: Sequence[Judged], describer: CaseDescriber
) -> tuple[tuple[Case, ...], tuple[ChangeGroup, ...]]:
    known = {row.id: row.description for row in judged}
    groups, group_of = grouping.group(
        (row.case for row in judged), lambda case: known[case.id] or describer.describe(case, None)
    )
    return tuple(replace(row.case, group=group_of.get(row.id)) for row in judged), groups


# the run


def _environment(config: Config, workers: Workers) -> Mapping[str, str]:
    kept = {
        name: value
        for name, value in config.compiler_environment.items()
        if name not in ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
    }
    if not workers.started:
        randomization = "no compiler was started"
    else:
        randomization = "off" if workers.addresses_fixed() else "on (refused by the system)"
    return {**kept, "address-randomization": randomization}


def _assemble_run(
    base: Side,
    head: Side,
    options: Options,
    cases: tuple[Case, ...],
    pairs: Sequence[Pair],
    environment: Mapping[str, str],
    duration_s: float,
) -> Run:
    summary = radius.summarize(cases, options.targets)
    if not cases or not any(case.verdict is not Verdict.UNSUPPORTED for case in cases):
        raise NothingComparedError(
            f"nothing was compared: {len(cases)} cases, none of which a toolchain supports",
            hint="see `irdiff corpus list` for what can be selected, and the patterns of --case",
        )
    launches = {
        launch.key: launch
        for pair in pairs
        for launch in (pair.base, pair.head)
        if isinstance(launch, Launch)
    }
    return Run(
        schema=SCHEMA,
        irdiff_version=irdiff.__version__,
        normalizer_version=normalize.NORMALIZER_VERSION,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=options.command,
        base=_revision(base),
        head=_revision(head),
        targets=options.targets,
        environment=environment,
        summary=summary,
        cases=cases,
        launches=dict(sorted(launches.items())),
        groups=(),
        reach=None,
        notes=tuple(dict.fromkeys((*_launcher_notes(base, head, options), *base.warnings, *head.warnings))),
        duration_s=round(duration_s, 3),
    )


def _reach(base: Side, head: Side, pairs: Sequence[Pair], captured: Sequence[Captured]) -> Reach | None:
    rows = [
        reach.Captured(corpus=side.corpus, catalog=catalog, workload=row.workload)
        for row in captured
        for side, catalog in ((base, row.catalogs.base), (head, row.catalogs.head))
    ]
    return reach.of_revisions(Sides(base=base.corpus, head=head.corpus), pairs, rows)


def _layer_notes(base: Side, head: Side, options: Options, compiler: Compiler) -> tuple[str, ...]:
    """What was seen of stages that do not keep below the frontend."""
    rows = [
        f"{side.toolchain.spec}: its stages for {target.name} call functions of {', '.join(files)}; what "
        "they made is known by the whole toolchain"
        for side in (base, head)
        for target in options.targets
        if (files := compiler.entered_frontend(side.toolchain, target))
    ]
    return tuple(dict.fromkeys(rows))


def _launcher_notes(base: Side, head: Side, options: Options) -> tuple[str, ...]:
    ours, theirs = base.toolchain.launchers, head.toolchain.launchers
    return launchers.notes(ours, theirs, (target.backend for target in options.targets))


def _revision(side: Side) -> Revision:
    toolchain = side.toolchain
    return Revision(
        spec=toolchain.spec,
        version=toolchain.version,
        digest=toolchain.digest,
        corpus=side.corpus.digest,
        ptxas=toolchain.assemblers,
        note=side.note,
    )
