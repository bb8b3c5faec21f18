"""One case from its two launches to its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irdiff.backends.stages import BINARIES
from irdiff.codegen.tool_compiler import Compiler
from irdiff.compare import cases, facts, launchers, verdicts
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError, intact
from irdiff.findings import Finding, FindingKind
from irdiff.model import (
    Case,
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
from irdiff.parallel import of_both
from irdiff.resolve.sides import Side
from irdiff.stages import Stage

_REPEATED_ASSEMBLIES = 4
_SPECIALIZATION = ("signature", "constexprs", "attributes")


class CaseComparer:
    """Compares cases of two sides. Thread-safe."""

    def __init__(
        self, compiler: Compiler, comparator: ArtifactComparator, sides: Sides[Side], options: Options
    ) -> None:
        self.compiler = compiler
        self.comparator = comparator
        self.sides = sides
        self.options = options

    def settled(self, pair: Pair) -> Case | None:
        """The case, where nothing is left to compare: one side lacks it, or both give one compiler the same
        input.

        Equal inputs under equal toolchains give the same code where there is any, and where no stage opens a
        file of its own: one side is compiled, or was in an earlier run, and shows both.
        """
        base, head = pair.base, pair.head
        if not isinstance(base, Launch) or not isinstance(head, Launch):
            try:
                return self._one_sided(pair)
            except DamagedArtifactError:
                return intact(lambda: self._one_sided(pair))
        if not self.options.use_cache:
            return None
        ours, theirs = (side.toolchain.digest for side in self.sides)
        if base.digest is None or base.digest != head.digest or ours != theirs:
            return None
        outcome = self._compile("base", base, pair.target)
        return cases.same_input(pair) if isinstance(outcome, Compiled) and not outcome.opened else None

    def _one_sided(self, pair: Pair) -> Case:
        """The one side that launches is compiled; a case that head has removed is not."""

        def outcome(name: str) -> Outcome | None:
            launch = pair.base if name == "base" else pair.head
            is_removed = name == "base" and pair.head is None
            if not isinstance(launch, Launch) or is_removed:
                return None
            return self._compile(name, launch, pair.target)

        alone = of_both(outcome)
        case = cases.one_sided(
            pair, alone.map(lambda made: made.failure if isinstance(made, Failed) else None)
        )
        if case.verdict is not Verdict.ADDED or not isinstance(alone.head, Compiled):
            return case
        return replace(
            case,
            facts=Sides(base={}, head=self._facts(alone.head, pair.target)),
            metadata=Sides(base={}, head=alone.head.metadata),
            artifacts=Sides(base={}, head={**cases.launched(pair.head), **alone.head.artifacts}),
            compile_s=Sides(base={}, head=alone.head.stage_times_s),
        )

    def compiled(self, pair: Pair) -> Sides[Outcome]:
        """The outcome of both sides."""
        launches = _launches(pair)
        return of_both(lambda name: self._compile(name, launches.of(name), pair.target))

    def _compile(self, name: str, launch: Launch, target: Target) -> Outcome:
        return self.compiler.compile(self.sides.of(name), launch, target)

    def compare(self, pair: Pair, outcomes: Sides[Outcome]) -> tuple[Case, Sides[Outcome]]:
        """The case, and the outcomes that it is of: where an artifact is damaged its side compiles again."""
        try:
            return self._compared(pair, outcomes), outcomes
        except DamagedArtifactError:
            return intact(lambda: self._compared_again(pair))

    def _compared_again(self, pair: Pair) -> tuple[Case, Sides[Outcome]]:
        outcomes = self.compiled(pair)
        return self._compared(pair, outcomes), outcomes

    def _compared(self, pair: Pair, outcomes: Sides[Outcome]) -> Case:
        ours, theirs = outcomes
        if isinstance(ours, Failed) or isinstance(theirs, Failed):
            failures = outcomes.map(lambda side: side.failure if isinstance(side, Failed) else None)
            return replace(
                cases.failed(pair, failures),
                artifacts=cases.artifacts(pair, outcomes),
                findings=_specialization_findings(pair),
                compile_s=outcomes.map(lambda side: side.stage_times_s),
            )
        if wanted := self.options.stages:
            ours, theirs = (
                verdicts.with_stages(ours, theirs, wanted),
                verdicts.with_stages(theirs, ours, wanted),
            )
        return self._judged(pair, Sides(base=ours, head=theirs))

    def _judged(self, pair: Pair, both: Sides[Compiled]) -> Case:
        ours, theirs = both
        stages, findings = verdicts.compare_texts(ours, theirs, self.comparator.compare)
        stages = {Stage.LAUNCH: cases.launch_status(pair), **stages}
        binary = verdicts.shared_binary(ours, theirs)
        if binary is None:
            evidence = verdicts.of_last_texts(ours, theirs, stages)
        else:
            evidence = self._of_binaries(binary, pair, both, stages)
        findings = (*findings, *_specialization_findings(pair), *evidence.findings)
        handed = self._handed_differently(both, pair.target)
        if handed:
            findings = (*findings, Finding(FindingKind.LAUNCH_DIFFERS, ",".join(handed)))
        after = verdicts.made_of_binaries(ours, theirs)
        verdict, stages, first = verdicts.judge(stages, evidence, handed_differs=bool(handed), after=after)
        if launchers.beyond_code(handed):
            stages = {**stages, Stage.LAUNCH: StageStatus.CHANGED}
        case = replace(
            cases.blank(pair, verdict),
            origin=cases.origin(first) if first else None,
            stages=stages,
            findings=tuple(dict.fromkeys(findings)),
            artifacts=cases.artifacts(pair, both),
            compile_s=both.map(lambda side: side.stage_times_s),
        )
        if verdict is Verdict.UNCHANGED:
            return case
        return replace(
            case,
            facts=both.map(lambda side: self._facts(side, pair.target)),
            metadata=both.map(lambda side: side.metadata),
        )

    # the launch

    def _handed_differently(self, both: Sides[Compiled], target: Target) -> tuple[str, ...]:
        """What the launcher receives and that differs: names of metadata, `packed`, `symbol`."""
        ours, theirs = both
        runtimes = self.sides.map(lambda side: side.toolchain.runtime)
        return (
            *launchers.metadata_differing(ours.metadata, theirs.metadata),
            *launchers.packed_differs(both, runtimes, target.backend),
            *(["symbol"] if self._finds_kernel(ours) != self._finds_kernel(theirs) else []),
        )

    def _finds_kernel(self, side: Compiled) -> bool:
        """Whether the driver finds the kernel in the binary by the name that the launcher receives."""
        binary = next((name for name in BINARIES if name in side.artifacts), None)
        symbol = side.handed.get("symbol")
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
        """Whether both sides made the same machine code once, in several compilations under randomized
        addresses.
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
