"""One case from its two launches to its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irdiff.compare import cases, facts, launch_metadata, launchers, verdicts
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError
from irdiff.compare.compiler import Compiler
from irdiff.compare.verdicts import TextComparison
from irdiff.findings import Finding, FindingKind
from irdiff.model import (
    Case,
    Compiled,
    Fact,
    Failed,
    Failure,
    Launch,
    Options,
    Outcome,
    Pair,
    Sides,
    Target,
    Verdict,
)
from irdiff.parallel import of_both
from irdiff.resolve.sides import Side
from irdiff.stages import MACHINE_STAGES, Stage
from irdiff.store.interning import interned

_REPEATED_ASSEMBLIES = 4
_FACT_STAGES: tuple[str, ...] = (Stage.TTGIR, Stage.PTX, Stage.AMDGCN, Stage.CUBIN, Stage.HSACO)


class CaseComparer:
    """Compares cases of two sides. Thread-safe."""

    def __init__(
        self, compiler: Compiler, comparator: ArtifactComparator, sides: Sides[Side], options: Options
    ) -> None:
        self.compiler = compiler
        self.comparator = comparator
        self.sides = sides
        self.options = options

    def uncompiled(self, pair: Pair) -> Case | None:
        """The case of which nothing has to be compiled: one side lacks it, or both are the same.

        Equal inputs under equal toolchains give the same code. A launch that its workload expects to fail
        is compiled all the same: where it compiles on neither side nothing was compared, and it is not called
        unchanged.
        """
        base, head = pair.base, pair.head
        if not isinstance(base, Launch) or not isinstance(head, Launch):
            return cases.one_sided(pair, self._failures_alone(pair))
        if not (self.options.use_cache and base.expected and head.expected):
            return None
        ours, theirs = (side.toolchain.digest for side in self.sides)
        if base.digest is None or base.digest != head.digest or ours != theirs:
            return None
        return cases.same_input(pair)

    def _failures_alone(self, pair: Pair) -> Sides[Failure | None]:
        """Why the one side that launches does not compile; not asked of what head has removed."""

        def failure(name: str) -> Failure | None:
            side, launch = self.sides.of(name), pair.base if name == "base" else pair.head
            is_removed = name == "base" and pair.head is None
            if not isinstance(launch, Launch) or is_removed:
                return None
            made = self.compiler.compile(side.toolchain, side.corpus, launch, pair.target)
            return made.failure if isinstance(made, Failed) else None

        return of_both(failure)

    def compiled(self, pair: Pair, *, fresh: bool = False) -> Sides[Outcome]:
        """What both sides make of their launches. With `fresh` nothing that was kept is trusted."""
        launches = _launches(pair)

        def one(name: str) -> Outcome:
            side, launch = self.sides.of(name), launches.of(name)
            return self.compiler.compile(side.toolchain, side.corpus, launch, pair.target, fresh=fresh)

        return of_both(one)

    def compare(self, pair: Pair, outcomes: Sides[Outcome]) -> tuple[Case, Sides[Outcome]]:
        """The case, and the outcomes that it is of: where an artifact is damaged both sides compile again."""
        try:
            return self._compared(pair, outcomes, fresh=False), outcomes
        except DamagedArtifactError:
            made = self.compiled(pair, fresh=True)
            return self._compared(pair, made, fresh=True), made

    def _compared(self, pair: Pair, outcomes: Sides[Outcome], *, fresh: bool) -> Case:
        ours, theirs = outcomes
        if isinstance(ours, Failed) or isinstance(theirs, Failed):
            return _failed(pair, outcomes)
        if self.options.stages:
            ours, theirs = verdicts.with_stages(ours, theirs, self.options.stages)
        texts = verdicts.compare_texts(ours, theirs, self.comparator.compare)
        texts = verdicts.with_launch(texts, differs=cases.launch_differs(pair))
        both = Sides(base=ours, head=theirs)
        return self._judged(pair, both, texts, self._evidence(pair, both, fresh=fresh))

    def _judged(
        self,
        pair: Pair,
        both: Sides[Compiled],
        texts: verdicts.StageComparison,
        evidence: verdicts.Evidence,
    ) -> Case:
        ours, theirs = both
        findings = [*texts.findings, *_launch_findings(pair), *verdicts.findings_of(evidence)]
        differing = self._handed_differently(both, pair.target)
        if differing:
            findings.append(Finding(FindingKind.LAUNCH_DIFFERS, ",".join(differing)))
        after = verdicts.made_of_binaries(ours, theirs)
        verdict, stages, first = verdicts.judge(texts, evidence, launch_differs=bool(differing), after=after)
        case = replace(
            cases.blank(pair, verdict),
            origin=cases.origin(first) if first else None,
            stages=interned(stages),
            findings=interned(tuple(dict.fromkeys(findings))),
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

    def _handed_differently(self, both: Sides[Compiled], target: Target) -> tuple[str, ...]:
        """What a launch passes on and that differs: names of metadata, `packed`, `symbol`."""
        ours, theirs = both
        runtimes = self.sides.map(lambda side: side.toolchain.runtime)
        return (
            *launch_metadata.differing(ours.metadata, theirs.metadata),
            *launchers.packed_differs(both, runtimes, target.backend),
            *(["symbol"] if self._finds_kernel(ours) != self._finds_kernel(theirs) else []),
        )

    def _finds_kernel(self, side: Compiled) -> bool:
        """Whether the name that the launcher is handed is a symbol of the binary."""
        binary = next((name for name in MACHINE_STAGES if name in side.artifacts), None)
        symbol = side.handed.get("symbol")
        if binary is None or symbol is None:
            return True
        return str(symbol) in self.comparator.symbols(binary, side.artifacts[binary].digest)

    # machine code

    def _evidence(self, pair: Pair, both: Sides[Compiled], *, fresh: bool) -> verdicts.Evidence:
        ours, theirs = both
        binary = verdicts.shared_binary(ours, theirs)
        if binary is None:
            return verdicts.without_binaries(ours, theirs)
        a, b = ours.artifacts[binary], theirs.artifacts[binary]
        same = self.comparator.same(binary, a.digest, b.digest)
        findings: tuple[Finding, ...] = ()
        if not same and verdicts.same_assembler(ours, theirs):
            text = self._ptx_texts(ours, theirs)
            if text and text.equal and self._may_make_the_same(pair, both, fresh=fresh):
                same, findings = True, (Finding(FindingKind.ASSEMBLER_SETS_INTERSECT),)
            elif text and text.equal and text.header_equal:
                findings = (Finding(FindingKind.ASSEMBLER_ALLOCATED_OTHERWISE),)
        if not same and self._has_same_instructions(binary, ours, theirs):
            findings = (*findings, Finding(FindingKind.SAME_INSTRUCTIONS))
        return verdicts.Binaries(stage=MACHINE_STAGES[binary], same=same, findings=findings)

    def _has_same_instructions(self, binary: str, base: Compiled, head: Compiled) -> bool:
        return self.comparator.same_instructions(
            *(
                {
                    name: side.artifacts[name].digest
                    for name in (binary, Stage.AMDGCN)
                    if name in side.artifacts
                }
                for side in (base, head)
            )
        )

    def _ptx_texts(self, base: Compiled, head: Compiled) -> TextComparison | None:
        """None where not both sides have PTX.

        Where both have the same text and one assembler, another result can only be the assembler's own: its
        noise, or what it makes of names and numbers. Any other difference, of the assembler too, is real.
        """
        a, b = base.artifacts.get(Stage.PTX), head.artifacts.get(Stage.PTX)
        if not a or not b:
            return None
        return self.comparator.compare(Stage.PTX, a.digest, b.digest)

    def _may_make_the_same(self, pair: Pair, both: Sides[Compiled], *, fresh: bool) -> bool:
        """Whether both sides made the same machine code once, in several compilations under randomized
        addresses.
        """
        codes = both.map(lambda _: set[str]())
        for name, launch in _launches(pair).items():
            side = self.sides.of(name)
            again = (
                self.compiler.recompile(
                    side.toolchain, side.corpus, launch, pair.target, attempt=attempt, fresh=fresh
                )
                for attempt in range(_REPEATED_ASSEMBLIES)
            )
            for outcome in (both.of(name), *again):
                if isinstance(outcome, Compiled) and Stage.CUBIN in outcome.artifacts:
                    cubin = outcome.artifacts[Stage.CUBIN]
                    codes.of(name).add(self.comparator.code_digest(Stage.CUBIN, cubin.digest))
        return not codes.base.isdisjoint(codes.head)

    # facts

    def _facts(self, compiled: Compiled, target: Target) -> Mapping[str, Fact]:
        parts = {name: compiled.artifacts[name] for name in _FACT_STAGES if name in compiled.artifacts}
        contents = {name: self.comparator.content(artifact.digest) for name, artifact in parts.items()}
        return interned(facts.of_side(compiled, contents, target))


def _launches(pair: Pair) -> Sides[Launch]:
    assert isinstance(pair.base, Launch)
    assert isinstance(pair.head, Launch)
    return Sides(base=pair.base, head=pair.head)


def _failed(pair: Pair, outcomes: Sides[Outcome]) -> Case:
    failures = outcomes.map(lambda side: side.failure if isinstance(side, Failed) else None)
    return replace(
        cases.failed(pair, failures),
        artifacts=cases.artifacts(pair, outcomes),
        findings=_launch_findings(pair),
        compile_s=outcomes.map(lambda side: side.stage_times_s),
    )


def _launch_findings(pair: Pair) -> tuple[Finding, ...]:
    base, head = _launches(pair)
    parts = [
        name
        for name in ("signature", "constexprs", "attributes")
        if getattr(base, name) != getattr(head, name)
    ]
    return (Finding(FindingKind.SPECIALIZATION_DIFFERS, ",".join(parts)),) if parts else ()
