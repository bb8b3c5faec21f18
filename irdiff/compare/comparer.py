"""Compares what both sides compiled: from two compilations to the verdict of a case.

A comparison of two compilations is kept under all that it rests on: both compilations (artifacts, metadata,
what is given to the launcher, the assembler and its log), both launches, whether they moved, the target,
both toolchains, and what reads LLVM IR. One whose texts may be read the next time is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from irdiff.backends.stages import BINARIES
from irdiff.compare import cases, edit_digest, facts, launchers, verdicts
from irdiff.compare.artifact_comparator import ArtifactComparator, may_be_cured
from irdiff.compare.cases import CodeComparison
from irdiff.findings import Finding, FindingKind
from irdiff.ir.llir import llvm_process
from irdiff.model import (
    ComparedCase,
    Compiled,
    Fact,
    Failed,
    Launch,
    Options,
    Outcome,
    Pair,
    Sides,
    StageStatus,
    Target,
    Verdict,
)
from irdiff.parallel import Stream
from irdiff.stages import Stage
from irdiff.store.memo import Memo, MemoStep

if TYPE_CHECKING:
    from irdiff.compile.compilation import Compilation, Compiler
    from irdiff.resolve.sides import Side

_REPEATED_ASSEMBLIES = 4
_SPECIALIZATION = ("signature", "constexprs", "attributes")


class KeptComparison(NamedTuple):
    found: CodeComparison
    edit: str | None


STEP: MemoStep[KeptComparison] = MemoStep("compared", __name__, KeptComparison)


class ComparedPair(NamedTuple):
    pair: Pair
    case: ComparedCase


def compare(compilations: Stream[Compilation], comparer: CaseComparer) -> Stream[ComparedPair]:
    return compilations.then(
        lambda compilation: ComparedPair(compilation.pair, comparer.compare(compilation))
    )


class CaseComparer:
    """Compares cases of two sides. Thread-safe."""

    def __init__(
        self, compiler: Compiler, comparator: ArtifactComparator, sides: Sides[Side], options: Options
    ) -> None:
        self.compiler = compiler
        self.comparator = comparator
        self.sides = sides
        self.options = options

    def compare(self, compilation: Compilation) -> ComparedCase:
        """Raises DamagedArtifactError: what the artifact was made of is compiled again then."""
        pair, outcomes = compilation.pair, self._wanted(compilation.outcomes)
        memo = self._memo(pair, outcomes)
        kept = memo.get() if memo else None
        if kept is None:
            comparison = self._compared(compilation, outcomes)
            outputs = cases.made(pair, outcomes, comparison.verdict)
            kept = KeptComparison(comparison, edit_digest.of_case(comparison, outputs, pair, self.comparator))
            if memo and not may_be_cured(comparison.findings):
                memo.keep(kept)
        return cases.compared(pair, kept.found, cases.made(pair, outcomes, kept.found.verdict), kept.edit)

    def _wanted(self, outcomes: Sides[Outcome | None]) -> Sides[Outcome | None]:
        base, head = outcomes
        names = self.options.stages
        if not names or not isinstance(base, Compiled) or not isinstance(head, Compiled):
            return outcomes
        return Sides(
            base=verdicts.with_stages(base, head, names), head=verdicts.with_stages(head, base, names)
        )

    def _memo(self, pair: Pair, outcomes: Sides[Outcome | None]) -> Memo[KeptComparison] | None:
        """None where there are no two compilations to compare."""
        digests = [_made_of(side) for side in outcomes if isinstance(side, Compiled)]
        if not self.options.use_cache or len(digests) < len(("base", "head")):
            return None
        launches = [launch.key for launch in _launches(pair)]
        toolchains = [side.toolchain.digest for side in self.sides]
        inputs = [toolchains, llvm_process.version(), pair.target, launches, pair.moved, digests]
        return self.comparator.store.memo(STEP, inputs)

    def _compared(self, compilation: Compilation, outcomes: Sides[Outcome | None]) -> CodeComparison:
        pair, (ours, theirs) = compilation.pair, outcomes
        if compilation.is_same_input:
            return cases.same_input(pair)
        if isinstance(ours, Compiled) and isinstance(theirs, Compiled):
            return self._judged(pair, Sides(base=ours, head=theirs))
        failures = outcomes.map(lambda side: side.failure if isinstance(side, Failed) else None)
        if isinstance(pair.base, Launch) and isinstance(pair.head, Launch):
            return cases.failed(pair, failures, _specialization_findings(pair))
        # what head alone has gets its figures
        facts = self._facts(theirs, pair.target) if isinstance(theirs, Compiled) else {}
        return cases.one_sided(pair, failures, facts)

    def _judged(self, pair: Pair, both: Sides[Compiled]) -> CodeComparison:
        ours, theirs = both
        stages, findings = verdicts.compare_texts(ours, theirs, self.comparator.compare)
        stages = {Stage.LAUNCH: cases.launch_status(pair), **stages}
        binary = verdicts.shared_binary(ours, theirs)
        if binary is None:
            evidence = verdicts.of_last_texts(ours, theirs, stages)
        else:
            evidence = self._of_binaries(binary, pair, both, stages)
        findings = (
            *findings,
            *_specialization_findings(pair),
            *evidence.findings,
            *cases.launch_findings(pair),
        )
        launcher_args = self._differing_launcher_args(both, pair.target)
        if launcher_args:
            findings = (*findings, Finding(FindingKind.LAUNCH_DIFFERS, ",".join(launcher_args)))
        after = verdicts.made_of_binaries(ours, theirs)
        verdict, stages, first = verdicts.judge(
            stages, evidence, launcher_args_differ=bool(launcher_args), after=after
        )
        if launchers.beyond_code(launcher_args):
            stages = {**stages, Stage.LAUNCH: StageStatus.CHANGED}
        is_unchanged = verdict is Verdict.UNCHANGED
        return CodeComparison(
            verdict=verdict,
            begins=first,
            stages=stages,
            findings=tuple(dict.fromkeys(findings)),
            facts=cases.NO_FACTS if is_unchanged else both.map(lambda side: self._facts(side, pair.target)),
            failures=Sides(base=None, head=None),
        )

    # the launch

    def _differing_launcher_args(self, both: Sides[Compiled], target: Target) -> tuple[str, ...]:
        """Names of arguments of the launcher that differ: metadata, `packed`, `symbol`."""
        ours, theirs = both
        runtimes = self.sides.map(lambda side: side.toolchain.runtime)
        return (
            *launchers.metadata_differing(ours.metadata, theirs.metadata),
            *launchers.packed_differs(both, runtimes, target.backend),
            *(["symbol"] if self._finds_kernel(ours) != self._finds_kernel(theirs) else []),
        )

    def _finds_kernel(self, side: Compiled) -> bool:
        """Returns True if the binary has the kernel under the name that the launcher receives."""
        binary = next((name for name in BINARIES if name in side.artifacts), None)
        symbol = side.launcher_args.get("symbol")
        if binary is None or symbol is None:
            return True
        return str(symbol) in self.comparator.symbols(binary, side.artifacts[binary].digest)

    # machine code

    def _of_binaries(
        self, binary: str, pair: Pair, both: Sides[Compiled], stages: verdicts.Statuses
    ) -> verdicts.CodeEquality:
        ours, theirs = both
        same = self.comparator.same(binary, *(side.artifacts[binary].digest for side in both))
        findings: tuple[Finding, ...] = ()
        assembly = BINARIES[binary].assembly
        has_text = assembly in ours.artifacts and assembly in theirs.artifacts
        if not same and has_text and verdicts.same_assembler(ours, theirs):
            # Of the same text one assembler makes other code only by its own noise, or by names and numbers.
            text = self.comparator.compare(assembly, *(side.artifacts[assembly].digest for side in both))
            if text.equal and self._may_make_the_same(binary, pair, both):
                same, findings = True, (Finding(FindingKind.ASSEMBLER_SETS_INTERSECT),)
            elif text.equal and text.header_equal:
                findings = (Finding(FindingKind.ASSEMBLER_ALLOCATED_OTHERWISE),)
        return verdicts.of_binaries(binary, stages, findings, same=same)

    def _may_make_the_same(self, binary: str, pair: Pair, both: Sides[Compiled]) -> bool:
        """Compiles both sides several times with randomized addresses. Returns True if the machine code of
        some compilation of base is that of some compilation of head.
        """
        codes = both.map(lambda _: set[str]())
        for name, launch in _launches(pair).items():
            side = self.sides.of(name)
            again = (
                self.compiler.compile(side, launch, pair.target, attempt=attempt)
                for attempt in range(_REPEATED_ASSEMBLIES)
            )
            for outcome in (both.of(name), *again):
                if isinstance(outcome, Compiled) and binary in outcome.artifacts:
                    digest = outcome.artifacts[binary].digest
                    codes.of(name).add(self.comparator.code_digest(binary, digest))
        return not codes.base.isdisjoint(codes.head)

    # facts

    def _facts(self, compiled: Compiled, target: Target) -> Mapping[str, Fact]:
        parts = {name: compiled.artifacts[name] for name in facts.READ if name in compiled.artifacts}
        contents = {name: self.comparator.content(artifact.digest) for name, artifact in parts.items()}
        return facts.of_side(compiled, contents, target)


def _launches(pair: Pair) -> Sides[Launch]:
    assert isinstance(pair.base, Launch)
    assert isinstance(pair.head, Launch)
    return Sides(base=pair.base, head=pair.head)


def _specialization_findings(pair: Pair) -> tuple[Finding, ...]:
    base, head = _launches(pair)
    parts = [name for name in _SPECIALIZATION if getattr(base, name) != getattr(head, name)]
    return (Finding(FindingKind.SPECIALIZATION_DIFFERS, ",".join(parts)),) if parts else ()


def _made_of(side: Compiled) -> list[object]:
    digests = {stage: artifact.digest for stage, artifact in side.artifacts.items()}
    return [digests, side.metadata, side.launcher_args, side.assembler, side.assembler_log, side.notes]
