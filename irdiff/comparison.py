"""One case from its two launches to its verdict: compiles what must be compiled, and no more."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from irdiff import normalize
from irdiff.compare import facts, verdicts
from irdiff.compare.verdicts import MACHINE_STAGES, StageComparison, TextComparison
from irdiff.compilation import CaptureFailure, Compiler
from irdiff.errors import NormalizeError
from irdiff.model import (
    Artifact,
    Case,
    Compiled,
    Fact,
    Failed,
    Failure,
    FailureKind,
    Launch,
    Origin,
    Outcome,
    Sides,
    StageStatus,
    Target,
    Verdict,
)
from irdiff.store import Store, key_of

if TYPE_CHECKING:
    from irdiff.pipeline import Options, Side

_REPEATED_ASSEMBLIES = 4


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The two launches of one case; None where a side has none, a failure where it could not be captured."""

    id: str
    launch_id: str
    target: Target
    base: Launch | CaptureFailure | None
    head: Launch | CaptureFailure | None
    supported: Sides[bool]

    @staticmethod
    def unsupported(workload: str, target: Target) -> Pair:
        """Stands for all launches of a workload where neither toolchain has the target's backend."""
        return Pair(
            id=f"{workload}:*@{target.name}",
            launch_id=f"{workload}:*",
            target=target,
            base=None,
            head=None,
            supported=Sides(base=False, head=False),
        )


class _DamagedArtifact(Exception):  # noqa: N818
    """An artifact that a record names cannot be read back; the case is compiled again."""


class CaseComparer:
    """Compares cases of two sides. Thread-safe: the only state is the store."""

    def __init__(self, compiler: Compiler, store: Store, base: Side, head: Side, options: Options) -> None:
        self.compiler = compiler
        self.store = store
        self.base = base
        self.head = head
        self.options = options
        self._lock = threading.Lock()

    def compare(self, pair: Pair) -> Case:
        base, head = pair.base, pair.head
        if not isinstance(base, Launch) or not isinstance(head, Launch):
            return _one_sided(pair)
        if self._same_input(base, head):
            return self._unchanged_by_input(pair, base, head)
        try:
            return self._compare_compiled(pair, base, head, fresh=False)
        except _DamagedArtifact:
            return self._compare_compiled(pair, base, head, fresh=True)

    def _same_input(self, base: Launch, head: Launch) -> bool:
        """The same compiler on the same input gives the same code: nothing to compile."""
        same_toolchain = self.base.toolchain.digest == self.head.toolchain.digest
        return self.options.shortcut and same_toolchain and base.digest == head.digest

    def _unchanged_by_input(self, pair: Pair, base: Launch, head: Launch) -> Case:
        stages = {
            "cuda": ("ttir", "ttgir", "llir", "ptx", "sass"),
            "hip": ("ttir", "ttgir", "llir", "amdgcn"),
        }
        names = stages.get(pair.target.backend, ())
        return replace(
            _blank(pair, head, Verdict.UNCHANGED),
            stages=dict.fromkeys(names, StageStatus.ABSENT),
            launches=Sides(base=base.digest, head=head.digest),
            findings=("not-compiled:same-toolchain-and-launch",),
        )

    # both sides compiled

    def _compare_compiled(self, pair: Pair, base: Launch, head: Launch, *, fresh: bool) -> Case:
        assemble = not self._may_share_assembler()
        ours = self._compile(self.base, base, pair.target, assemble=assemble, fresh=fresh)
        theirs = self._compile(self.head, head, pair.target, assemble=assemble, fresh=fresh)
        if isinstance(ours, Failed) or isinstance(theirs, Failed):
            return self._failed(pair, base, head, ours, theirs)
        texts = verdicts.compare_texts(self._wanted(ours), self._wanted(theirs), self._equivalent)
        findings = [*texts.findings, *_launch_findings(base, head)]
        launch_differs = not verdicts.same_launch(ours.metadata, theirs.metadata)
        ptxas = self.base.toolchain.ptxas, self.head.toolchain.ptxas
        if self.options.shortcut and verdicts.by_rule(ours, theirs, texts, *ptxas):
            findings.append("machine-code-by-rule")
            return self._judged(pair, base, head, ours, theirs, texts, "sass", True, launch_differs, findings)
        made = self._assembled(pair.target, base, head, ours, theirs)
        if isinstance(made.base, Failed) or isinstance(made.head, Failed):
            return self._failed(pair, base, head, made.base, made.head)
        ours, theirs = made.base, made.head
        stage, same_code = self._machine_code(ours, theirs)
        if stage is None and {"no-linker"} & {*ours.notes, *theirs.notes}:
            findings.append("machine-code-as-text:no-linker")
        return self._judged(pair, base, head, ours, theirs, texts, stage, same_code, launch_differs, findings)

    def _may_share_assembler(self) -> bool:
        """Where every ptxas is the same, PTX is looked at before it is assembled."""
        ours, theirs = self.base.toolchain.ptxas, self.head.toolchain.ptxas
        return self.options.shortcut and bool(set(ours.values()) & set(theirs.values()))

    def _compile(self, side: Side, launch: Launch, target: Target, *, assemble: bool, fresh: bool) -> Outcome:
        return self.compiler.compile(
            side.toolchain, side.corpus, launch, target, assemble=assemble, fresh=fresh
        )

    def _assembled(
        self, target: Target, base: Launch, head: Launch, ours: Compiled, theirs: Compiled
    ) -> Sides[Outcome]:
        rows = (self.base, base, ours), (self.head, head, theirs)
        made = [self.compiler.assemble(s.toolchain, s.corpus, launch, target, c) for s, launch, c in rows]
        return Sides(base=made[0], head=made[1])

    def _wanted(self, compiled: Compiled) -> Compiled:
        if not self.options.stages:
            return compiled
        keep = {*self.options.stages, *MACHINE_STAGES, "ptx"}
        return replace(compiled, artifacts={k: v for k, v in compiled.artifacts.items() if k in keep})

    def _equivalent(self, stage: str, ours: Artifact, theirs: Artifact) -> TextComparison:
        key = key_of("equivalent", normalize.NORMALIZER_VERSION, stage, ours.digest, theirs.digest)
        known = self.store.get_record("equivalent", key)
        if known is None:
            a, b = self._text(ours), self._text(theirs)
            if a is None or b is None:  # binary artifacts of a backend that is not known
                known = {"equal": False, "header_equal": False, "findings": [f"compared-as-bytes:{stage}"]}
            else:
                known = _compare_canonical(stage, a, b)
            self.store.put_record("equivalent", key, known)
        return TextComparison(
            equal=known["equal"], header_equal=known["header_equal"], findings=tuple(known["findings"])
        )

    def _text(self, artifact: Artifact) -> str | None:
        content = self._read(artifact)
        try:
            return None if b"\0" in content else content.decode()
        except UnicodeDecodeError:
            return None

    def _read(self, artifact: Artifact) -> bytes:
        content = self.store.get(artifact.digest)
        if content is None:
            raise _DamagedArtifact(artifact.digest)
        return content

    def _machine_code(self, ours: Compiled, theirs: Compiled) -> tuple[str | None, bool | None]:
        """The stage that machine code is reported under, and whether it is the same; (None, None) without one."""
        for binary, stage in MACHINE_STAGES.items():
            a, b = ours.artifacts.get(binary), theirs.artifacts.get(binary)
            if a and b:
                return stage, a.digest == b.digest or self._code_digest(a) == self._code_digest(b)
        return None, None

    def _code_digest(self, artifact: Artifact) -> str:
        key = key_of("code", normalize.NORMALIZER_VERSION, artifact.stage, artifact.digest)
        known = self.store.get_record("code", key)
        if known is None:
            known = normalize.machine_code(artifact.stage, self._read(artifact)).digest
            self.store.put_record("code", key, known)
        return str(known)

    # verdicts

    def _judged(
        self,
        pair: Pair,
        base: Launch,
        head: Launch,
        ours: Compiled,
        theirs: Compiled,
        texts: StageComparison,
        machine_stage: str | None,
        same_code: bool | None,
        launch_differs: bool,
        findings: list[str],
    ) -> Case:
        if same_code is False:
            same_code = self._same_in_sets(pair, base, head, ours, theirs, findings)
        verdict, stages, first = verdicts.judge(texts, machine_stage, same_code, launch_differs)
        if launch_differs:
            names = verdicts.differing_launch(ours.metadata, theirs.metadata)
            findings.append("launch-differs:" + ",".join(names))
        changed = verdict is Verdict.CHANGED
        unstable = self._recheck(pair, base, head, ours, theirs) if changed and self.options.recheck else ()
        keep_facts = verdict is not Verdict.UNCHANGED
        return replace(
            _blank(pair, head, verdict),
            origin=_origin(first) if first else None,
            stages=stages,
            facts=Sides(
                base=self._facts(ours) if keep_facts else {}, head=self._facts(theirs) if keep_facts else {}
            ),
            findings=tuple(dict.fromkeys(findings)),
            nondeterministic=unstable,
            artifacts=Sides(base=ours.artifacts, head=theirs.artifacts),
            launches=Sides(base=base.digest, head=head.digest),
            metadata=Sides(base=ours.metadata, head=theirs.metadata)
            if keep_facts
            else Sides(base={}, head={}),
            compile_s=Sides(base=ours.stage_times_s, head=theirs.stage_times_s),
        )

    def _facts(self, compiled: Compiled) -> Mapping[str, Fact]:
        wanted = ("ttgir", "ptx", "amdgcn", "cubin", "hsaco")
        parts = {name: compiled.artifacts[name] for name in wanted if name in compiled.artifacts}
        key = key_of(
            "facts", normalize.NORMALIZER_VERSION, {n: a.digest for n, a in parts.items()}, compiled.metadata
        )
        known = self.store.get_record("facts", key)
        if known is None:
            known = facts.of_side(compiled, {name: self._read(artifact) for name, artifact in parts.items()})
            self.store.put_record("facts", key, known)
        result: Mapping[str, Fact] = known
        return result

    def _same_in_sets(
        self, pair: Pair, base: Launch, head: Launch, ours: Compiled, theirs: Compiled, findings: list[str]
    ) -> bool:
        """Whether a nondeterministic assembler, run several times, gives both sides a common result.

        Asked only where PTX is the same text for two different ptxas, or addresses cannot be fixed:
        elsewhere one assembly with fixed addresses stands for all.
        """
        if "cubin" not in ours.artifacts or not self._assembler_is_noisy(ours, theirs):
            return False
        sets = []
        for side, launch in ((self.base, base), (self.head, head)):
            codes = set()
            for attempt in range(_REPEATED_ASSEMBLIES):
                again = self.compiler.recompile(
                    side.toolchain, side.corpus, launch, pair.target, attempt=attempt
                )
                if isinstance(again, Compiled) and "cubin" in again.artifacts:
                    codes.add(self._code_digest(again.artifacts["cubin"]))
            sets.append(codes)
        sets[0].add(self._code_digest(ours.artifacts["cubin"]))
        sets[1].add(self._code_digest(theirs.artifacts["cubin"]))
        if sets[0] & sets[1]:
            findings.append("assembler-sets-intersect")
            return True
        return False

    def _assembler_is_noisy(self, ours: Compiled, theirs: Compiled) -> bool:
        a, b = ours.artifacts.get("ptx"), theirs.artifacts.get("ptx")
        if not a or not b:
            return False
        return a.digest == b.digest or self._equivalent("ptx", a, b).equal

    def _recheck(
        self, pair: Pair, base: Launch, head: Launch, ours: Compiled, theirs: Compiled
    ) -> tuple[str, ...]:
        """The sides that disagree with themselves when compiled again in another process."""
        unstable = []
        for name, side, launch, first in (("base", self.base, base, ours), ("head", self.head, head, theirs)):
            again = self.compiler.recompile(side.toolchain, side.corpus, launch, pair.target, attempt=0)
            if not self._agrees(first, again):
                unstable.append(name)
        return tuple(unstable)

    def _agrees(self, first: Compiled, again: Outcome) -> bool:
        if isinstance(again, Failed):
            return False
        for name, artifact in first.artifacts.items():
            other = again.artifacts.get(name)
            if other is None or artifact.digest == other.digest:
                continue
            if name in MACHINE_STAGES:
                if self._code_digest(artifact) != self._code_digest(other):
                    return False
            elif not self._equivalent(name, artifact, other).equal:
                return False
        return True

    def _failed(self, pair: Pair, base: Launch, head: Launch, ours: Outcome, theirs: Outcome) -> Case:
        failures = Sides(
            base=ours.failure if isinstance(ours, Failed) else None,
            head=theirs.failure if isinstance(theirs, Failed) else None,
        )
        return replace(
            _failure_case(pair, head, failures),
            artifacts=Sides(base=ours.artifacts, head=theirs.artifacts),
            launches=Sides(base=base.digest, head=head.digest),
            findings=_launch_findings(base, head),
            compile_s=Sides(base=ours.stage_times_s, head=theirs.stage_times_s),
        )


def _compare_canonical(stage: str, ours: str, theirs: str) -> dict[str, object]:
    try:
        result = normalize.equivalent(stage, ours, theirs)
    except NormalizeError as error:
        # The text is not what its stage says; nothing but its bytes can be compared.
        return {
            "equal": False,
            "header_equal": False,
            "findings": [f"not-normalized:{stage}: {error.what}"[:200]],
        }
    return {"equal": result.equal, "header_equal": result.header_equal, "findings": list(result.findings)}


def _origin(stage: str) -> Origin:
    return Origin(stage=stage, pass_name=None, healed=(), charged=(), note="")


def _launch_findings(base: Launch, head: Launch) -> tuple[str, ...]:
    parts = [
        name
        for name in ("signature", "constexprs", "attributes")
        if getattr(base, name) != getattr(head, name)
    ]
    return ("specialization-differs:" + ",".join(parts),) if parts else ()


def _one_sided(pair: Pair) -> Case:
    """A case that at least one side did not even launch."""
    known = (
        pair.head if isinstance(pair.head, Launch) else pair.base if isinstance(pair.base, Launch) else None
    )
    failures = Sides(base=_capture_failure(pair, "base"), head=_capture_failure(pair, "head"))
    if failures.base is None and failures.head is None:
        verdict = Verdict.ADDED if pair.head is not None else Verdict.REMOVED
        return replace(
            _blank(pair, known, verdict),
            launches=Sides(
                base=pair.base.digest if isinstance(pair.base, Launch) else None,
                head=pair.head.digest if isinstance(pair.head, Launch) else None,
            ),
        )
    return _failure_case(pair, known, failures)


def _capture_failure(pair: Pair, side: str) -> Failure | None:
    captured = getattr(pair, side)
    if isinstance(captured, CaptureFailure):
        return captured.failure
    if captured is None and not getattr(pair.supported, side):
        return Failure(
            kind=FailureKind.UNSUPPORTED,
            stage="capture",
            message=f"the toolchain has no backend {pair.target.backend!r}",
            signal=None,
            stderr="",
        )
    return None


def _failure_case(pair: Pair, launch: Launch | None, failures: Sides[Failure | None]) -> Case:
    base, head = failures.base, failures.head
    kinds = {failure.kind for failure in (base, head) if failure}
    if kinds == {FailureKind.UNSUPPORTED} and base and head:
        verdict = Verdict.UNSUPPORTED
    elif base and head:
        verdict = Verdict.FAILING
    elif pair.base is None:
        verdict = Verdict.ADDED
    elif pair.head is None:
        verdict = Verdict.REMOVED
    else:
        verdict = Verdict.BROKEN if head else Verdict.FIXED
    shown = [f"{name}: {failure.message}" for name, failure in (("base", base), ("head", head)) if failure]
    first = head or base
    return replace(
        _blank(pair, launch, verdict),
        error="; ".join(shown),
        failures=failures,
        origin=_origin(first.stage) if first and verdict in (Verdict.BROKEN, Verdict.FIXED) else None,
    )


def _blank(pair: Pair, launch: Launch | None, verdict: Verdict) -> Case:
    return Case(
        id=pair.id,
        workload=pair.launch_id.partition(":")[0],
        kernel=launch.kernel if launch else "",
        target=pair.target.name,
        tier=launch.tier if launch else "core",
        verdict=verdict,
        origin=None,
        stages={},
        facts=Sides(base={}, head={}),
        findings=(),
        nondeterministic=(),
        error=None,
        failures=Sides(base=None, head=None),
        artifacts=Sides(base={}, head={}),
        launches=Sides(base=None, head=None),
        metadata=Sides(base={}, head={}),
        compile_s=Sides(base={}, head={}),
        renamed_from=None,
        group=None,
    )
