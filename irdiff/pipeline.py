"""The flow of a comparison, readable top to bottom:

resolve → select → capture → compile → compare → attribute → judge → group → check determinism → count → write

`comparison.resolved` takes what a user typed to two sides, `compare` takes these to a run folder. Whoever
compares anything calls these two, and nothing below them. Each step takes the whole batch and returns a new
value. Those from compile to judge stream: a case passes all four at once. Work is counted while the
determinism check waits for compilers. `Case` is put together at the end.
"""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import irdiff
from irdiff import backends
from irdiff.attribute.attributor import Attributor, attribute
from irdiff.attribute.edit_reader import EditReader
from irdiff.attribute.replayer import Replayer
from irdiff.backends import machine_code_text
from irdiff.capture import (
    capturing,
    expected_endings,
    kernel_sources,
    launch_texts,
    notices,
    pairing,
    unexamined,
)
from irdiff.capture.pairing import CapturedWorkload
from irdiff.codegen.tool_compiler import ToolCompiler
from irdiff.compare import radius, runtime
from irdiff.compare.artifact_comparator import ArtifactComparator, intact
from irdiff.compare.comparer import CaseComparer
from irdiff.compare.comparer import compare as compare_code
from irdiff.comparison import Comparison, SameCompiler
from irdiff.compile import selecting
from irdiff.compile.compilation import CaseCompiler
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.coverage import changed_files, line_counter
from irdiff.determinism.determinism_check import (
    NOT_CHECKED,
    Determinism,
    DeterminismCheck,
    Recompiler,
    UnstableAssemblers,
)
from irdiff.errors import NothingComparedError
from irdiff.gate import tests_answer
from irdiff.group import grouping, report_classes
from irdiff.group.describer import CaseDescriber, judge
from irdiff.group.grouping import Judged
from irdiff.ir.canonical import NORMALIZER_VERSION
from irdiff.ir.llir import llvm_process
from irdiff.model import (
    SCHEMA,
    Case,
    ChangeGroup,
    Edited,
    EditedLines,
    Launch,
    Pair,
    Reach,
    Revision,
    Run,
    RuntimeEdit,
    Verdict,
)
from irdiff.parallel import Progress, Report, Stream, meanwhile
from irdiff.resolve import settings
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains.repository import Snapshot
from irdiff.run import run_folder
from irdiff.run.readable import readable
from irdiff.store import Store
from irdiff.store.shared import SharedStore
from irdiff.words import counted
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers

if TYPE_CHECKING:
    from irdiff.cost.changed_cases import CountedCases


@dataclass(frozen=True, kw_only=True)
class ComparisonSteps:
    config: Config
    store: Store
    workers: Workers
    compiler: WorkerCompiler | ToolCompiler
    case_compiler: CaseCompiler
    comparer: CaseComparer
    attributor: Attributor | None
    """None where nobody asks for passes and components."""
    describer: CaseDescriber
    check: DeterminismCheck | None
    """None where nobody asks for it."""
    shared: SharedStore | None
    """The store of many machines, where there is one."""
    report: Report


def compare(
    asked: Comparison | SameCompiler,
    config: Config,
    out: Path | None,
    report: Report,
    *,
    fill: Callable[[Comparison], tuple[str, ...]] | None = None,
) -> tuple[Run, Path]:
    """The run, and its folder: `out`, or one in the cache. `fill` has other machines make what will be
    needed, and returns notes.

    Raises NothingComparedError where not one case could be compared, StoreError, ToolchainError.
    """
    started = time.monotonic()
    folder = out or config.runs / run_name(*asked.names)
    if isinstance(asked, SameCompiler):
        run = readable(_blank(asked))
        run_folder.write(folder, run, Store(config.store), ())
        return run, folder
    with closing(Workers(config)) as warm:
        asked = _selected(asked, config, report, warm)
        if fill is not None:
            asked = replace(asked, notes=(*asked.notes, *fill(asked)))
        with opened(asked, config, report, warm=warm) as steps:
            run = _compared(asked, steps)
    tests = tests_answer.answer(run, asked.tests) if asked.tests else None
    run = readable(replace(run, tests=tests, duration_s=round(time.monotonic() - started, 3)))
    _write(run, folder, steps.store)
    return run, folder


def run_name(base: str, head: str) -> str:
    """A name for a run folder: the time in UTC, then both sides."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S-%f")
    words = (re.sub(r"[^A-Za-z0-9.]+", "-", spec.rsplit("/", 1)[-1]).strip("-") for spec in (base, head))
    return f"{stamp}-{'-'.join(words)}"[:120]


def _selected(asked: Comparison, config: Config, report: Report, warm: Workers) -> Comparison:
    """With patterns of whole names. Raises UsageError for one that means nothing on either side."""
    if asked.expanded_patterns is not None:
        return asked
    expanded = selecting.of_sides(asked.options.cases, asked.sides, asked.targets, config, report, warm=warm)
    return replace(
        asked, options=replace(asked.options, cases=selecting.flat(expanded)), expanded_patterns=expanded
    )


def fill(part: Comparison, steps: ComparisonSteps) -> int:
    """Makes and keeps all that one part of the comparison that `steps` are of takes from the store, and
    writes no run folder. How many cases it has.

    Raises as `compare`.
    """
    return len(_compared(part, steps).cases)


def _compared(asked: Comparison, steps: ComparisonSteps) -> Run:
    for side in asked.sides:
        kernel_sources.keep_root(side.corpus, steps.config)
    captured = _captured(asked, steps)
    settings = launch_texts.options_of_sides(side.toolchain for side in asked.sides)
    every = capturing.matched(captured, asked.sides, asked.options)
    matched, merged = pairing.without_merged(every)
    matched, program_endings = expected_endings.left_out(matched, asked.sides)
    pairs = [launch_texts.resolved(pair, steps.store, settings) for pair in matched]
    compiled = Stream.of(pairs, steps.case_compiler.compile)
    compared = compare_code(compiled, steps.comparer)
    attributed = attribute(compared, steps.attributor, asked.sides)
    judged = _results(judge(attributed, steps.describer), steps)
    alike = grouping.group(judged)
    launches = _launches(pairs)
    with meanwhile(partial(_counted, judged, launches, asked, steps), steps.report) as counted:
        determinism = steps.check.run(judged, alike, steps.report) if steps.check else NOT_CHECKED
    groups = grouping.change_groups(alike, determinism.disagreeing)
    cases = _cases(judged, groups, determinism, counted.result())
    exercised, lines = _exercised(asked, pairs, steps)
    at_launch = _runtime(asked, pairs)
    unseen = (
        *unexamined.of_sides(asked.sides, captured),
        *program_endings,
    )
    if steps.shared:
        steps.shared.push(steps.report)
    return replace(
        _blank(asked),
        environment=_environment(steps),
        summary=radius.summarize(cases, asked.targets),
        cases=cases,
        launches=launches,
        groups=groups,
        reach=_reach(asked, pairs, captured),
        edited_lines=lines,
        cut_from=capturing.cut_from(asked.sides, asked.targets, asked.options),
        runtime=at_launch,
        unexamined=unseen,
        notes=(
            *asked.notes,
            *unseen,
            *runtime.notes(at_launch),
            *_notes(asked, pairs, captured, steps),
            *exercised,
            *unexamined.merged(merged),
            *_shared(pairs),
            *_compiled_kernels(every),
            *determinism.notes,
            *steps.store.notes(),
            *(steps.shared.notes() if steps.shared else ()),
        ),
    )


def _captured(asked: Comparison, steps: ComparisonSteps) -> list[CapturedWorkload]:
    places = capturing.places_of_shard(asked.sides, asked.targets, asked.options)
    if steps.shared:
        toolchains = [side.toolchain.digest for side in asked.sides]
        steps.shared.pull(toolchains, [(name, target.name) for name, target in places], steps.report)
    return capturing.capture(places, asked.sides, steps.compiler.catalog, steps.config.jobs, steps.report)


def _results(judged: Stream[Judged], steps: ComparisonSteps) -> list[Judged]:
    """Takes the cases through the steps from compiling to judging, and sorts them by their ids.

    Raises NothingComparedError if all cases are unsupported.
    """

    def with_reuse(step: Progress) -> None:
        taken = steps.compiler.taken_from_store
        steps.report(replace(step, detail=f"{taken} sides from the cache" if taken else step.detail))

    # one thread more than compilers: normalizing one case overlaps with compiling the next
    results = judged.within(intact).results(steps.config.jobs + 1, "compare", with_reuse)
    found = sorted(results, key=lambda row: row.id)
    if found and all(row.case.verdict is Verdict.UNSUPPORTED for row in found):
        raise NothingComparedError(
            f"nothing was compared: no toolchain supports the target of any of {counted(len(found), 'case')}",
            hint="see `irdiff corpus list` for what can be selected, and the patterns of --case",
        )
    return found


def _counted(
    judged: Sequence[Judged],
    launches: Mapping[str, Launch],
    asked: Comparison,
    steps: ComparisonSteps,
    report: Report,
) -> CountedCases:
    changed = [row.case for row in judged if row.case.verdict is Verdict.CHANGED]
    if not changed:
        return {}
    # numpy and the executors, a third of what a comparison loads
    from irdiff.cost.changed_cases import LaunchCounter, disassembler_of, set_other_options

    counter = LaunchCounter(
        store=steps.store,
        disassembler=disassembler_of(asked.sides),
        report=report,
        is_edited=set_other_options(asked.sides),
    )
    return counter.count(changed, launches, asked.targets)


def _cases(
    judged: Sequence[Judged], groups: Sequence[ChangeGroup], determinism: Determinism, counted: CountedCases
) -> tuple[Case, ...]:
    group_of = {member: group.id for group in groups for member in group.members}

    def case(row: Judged) -> Case:
        disagreeing = determinism.disagreeing.get(row.id, {})
        summary = report_classes.with_noise(row.description.summary, disagreeing) if row.description else None
        cost = counted.get(row.id)
        return Case(
            **{**vars(row.case), **(vars(cost) if cost else {})},
            nondeterministic=tuple(sorted(disagreeing)),
            unsteady_stages=disagreeing,
            not_recompiled=determinism.unanswered.get(row.id, ()),
            group=group_of.get(row.id),
            summary=summary,
        )

    return tuple(map(case, judged))


def _blank(asked: Comparison | SameCompiler) -> Run:
    """The run before anything is compared."""
    edited: Edited | None
    if isinstance(asked, SameCompiler):
        revisions, edited = asked.seen.snapshots.map(_tree), asked.seen.edited
    else:
        revisions, edited = asked.sides.map(_revision), asked.edited
    return Run(
        schema=SCHEMA,
        irdiff_version=irdiff.__version__,
        normalizer_version=NORMALIZER_VERSION,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=asked.command,
        options=asked.options,
        base=revisions.base,
        head=revisions.head,
        targets=asked.targets,
        environment={},
        summary=radius.summarize((), asked.targets),
        cases=(),
        launches={},
        groups=(),
        reach=None,
        edited=edited,
        edited_lines=None,
        cut_from="",
        runtime=(),
        notes=(),
        duration_s=0.0,
    )


@contextmanager
def opened(
    asked: Comparison, config: Config, report: Report, *, warm: Workers | None = None
) -> Iterator[ComparisonSteps]:
    """Opens the store, LLVM, workers and steps of one comparison; reuses `warm` workers if given."""
    store = Store(config.store)
    chosen = asked.options
    processes = nullcontext(warm) if warm else closing(Workers(config))
    with processes as workers, llvm_process.opened(config) as llvm:
        comparator = ArtifactComparator(store, llvm.reprint)
        reuse = chosen.use_cache
        inner = WorkerCompiler(Requests(config, workers), store, chosen, reuse=reuse)
        tools = [side.substitute for side in asked.sides if side.substitute]
        compiler = ToolCompiler(inner, tools, store, config, reuse=reuse) if tools else inner
        replayer, reader = Replayer(compiler), EditReader(comparator)
        base, head = asked.sides
        same_compiler = base.toolchain.digest == head.toolchain.digest
        check = DeterminismCheck(
            recompiler=Recompiler(compiler, replayer, comparator),
            unstable=UnstableAssemblers(store, asked.sides),
            sides=asked.sides,
            threads=config.jobs + 1,
        )
        yield ComparisonSteps(
            config=config,
            store=store,
            workers=workers,
            compiler=compiler,
            case_compiler=CaseCompiler(compiler, asked.sides, reuse=reuse),
            comparer=CaseComparer(compiler, comparator, asked.sides, chosen),
            attributor=Attributor(reader, replayer) if chosen.attribute else None,
            describer=CaseDescriber(
                reader,
                same_compiler=same_compiler,
                reuse=reuse,
                packages=machine_code_text.newest_last(*(side.toolchain for side in asked.sides)),
            ),
            check=check if chosen.recheck else None,
            shared=SharedStore(store, config.shared_store) if config.shared_store else None,
            report=report,
        )


# write


def _write(run: Run, out: Path, store: Store) -> None:
    digests = [
        artifact.digest
        for case in run.cases
        if case.verdict not in (Verdict.UNCHANGED, Verdict.UNSUPPORTED)
        for side in case.artifacts
        for artifact in side.values()
    ]
    run_folder.write(out, run, store, digests)


def _launches(pairs: Iterable[Pair]) -> Mapping[str, Launch]:
    sides = (side for pair in pairs for side in (pair.base, pair.head))
    found = {side.key: side for side in sides if isinstance(side, Launch)}
    return dict(sorted(found.items()))


def _environment(steps: ComparisonSteps) -> Mapping[str, str]:
    kept = {
        name: value
        for name, value in steps.config.compiler_environment.items()
        if name not in ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
    }
    if not steps.workers.started:
        randomization = "no compiler was started"
    else:
        randomization = "off" if steps.workers.addresses_fixed() else "on (refused by the system)"
    return {**kept, "address-randomization": randomization}


def _runtime(asked: Comparison, pairs: Sequence[Pair]) -> tuple[RuntimeEdit, ...]:
    launched = {pair.target.backend for pair in pairs if pair.base is not None or pair.head is not None}
    return runtime.edits(asked.sides.map(lambda side: side.toolchain.runtime), launched)


def _reach(asked: Comparison, pairs: Sequence[Pair], captured: Sequence[CapturedWorkload]) -> Reach | None:
    corpora = asked.sides.map(lambda side: side.corpus)
    return changed_files.of_revisions(corpora, pairs, captured)


def _notes(
    asked: Comparison,
    pairs: Sequence[Pair],
    captured: Sequence[CapturedWorkload],
    steps: ComparisonSteps,
) -> tuple[str, ...]:
    notes = notices.cleared(steps.config.cleared_variables)
    notes += notices.notes(captured, asked.sides, steps.config.withheld_variables)
    toolchains = asked.sides.map(lambda side: side.toolchain)
    needed = {target.backend for target in asked.targets}
    idle = {backend.FOLDER for name, backend in backends.BACKENDS.items() if name not in needed}
    notes += settings.notes(toolchains, idle)
    notes += [warning for side in asked.sides for warning in side.warnings]
    notes += steps.compiler.notes() if isinstance(steps.compiler, ToolCompiler) else ()
    typed = asked.expanded_patterns or {pattern: (pattern,) for pattern in asked.options.cases}
    notes += notices.patterns(typed, [pair.id for pair in pairs])
    return tuple(dict.fromkeys(notes))


def _exercised(
    asked: Comparison, pairs: Sequence[Pair], steps: ComparisonSteps
) -> tuple[tuple[str, ...], EditedLines | None]:
    """Which edited lines of the compiler ran, or a note that nobody counted them."""
    if not asked.exercised or not isinstance(steps.compiler, WorkerCompiler):
        return (), None
    if asked.sides.head.counting is None:
        # as they were typed: a label is `main (1a2b3c4d5e)`
        base, head = (side.toolchain.spec.partition(" ")[0] for side in asked.sides)
        build = f"irdiff toolchain build {head} --coverage {base}"
        return (f"which edited lines ran is not known: no compiler was built to count them ({build})",), None
    return (), line_counter.of_edited(asked.sides.head, pairs, steps.compiler, steps.report)


def _shared(pairs: Sequence[Pair]) -> Iterator[str]:
    """A note where launches are one and the same input: a few compilations then stand for many cases."""
    rows = [
        (pair.base.digest, pair.head.digest, pair.target.name)
        for pair in pairs
        if isinstance(pair.base, Launch) and isinstance(pair.head, Launch)
    ]
    known = [row for row in rows if row[0] and row[1]]
    again = len(known) - len(set(known))
    if again:
        yield (
            f"{again} of {len(pairs)} cases have the same input as another case: "
            "each input was compiled once, each case counts"
        )


def _compiled_kernels(pairs: Sequence[Pair]) -> Iterator[str]:
    """A note where the same launches need more or fewer compiled kernels: a constant became an argument."""
    base, head = pairing.compiled_kernels(pairs)
    if base and head and base != head:
        yield f"for the same launches base compiles {base} different kernels, and head {head}"


def _revision(side: Side) -> Revision:
    corpus = side.corpus.digest
    return Revision.of_toolchain(side.toolchain, corpus=corpus, note=side.note, revision=side.revision)


def _tree(snap: Snapshot) -> Revision:
    return Revision.of_tree(spec=snap.label, digest=snap.tree, note=snap.title)
