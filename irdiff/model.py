"""Every domain type of irdiff. Read this file and `pipeline.py` to know the program.

A *workload* launches *kernels*. A *launch* on a *target* is a *case*. Each *side* (base, head) compiles the
case in *stages*, and each stage produces an *artifact*. The comparison of the artifacts gives each stage a
*status* and the case a *verdict*. `Run` is the result of one comparison. It is written to `run.json` field by
field, so a new or changed field changes the schema.

This module imports only the standard library, because everything imports it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from irdiff.counted_work import NotCountedWork, Work
from irdiff.findings import Finding

T = TypeVar("T")
U = TypeVar("U")

SCHEMA = "irdiff-run/4"

Fact = int | float | str
"""One measured property of a compiled kernel; the name carries the unit (`spill_store_bytes`)."""


def _fields(value: Any) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


_sorted_json = json.JSONEncoder(sort_keys=True, default=_fields)
"""Created once: `json.dumps` creates an encoder for each call, and a large run has 80,000 launches."""


class Verdict(StrEnum):
    """The result for one case."""

    UNCHANGED = "unchanged"
    """The machine code and every compared stage above it are the same."""
    IR_ONLY = "ir-only"
    """Some IR changed, the machine code did not."""
    CHANGED = "changed"
    """The executing code, or what the launch passes to it, differs, or could not be compared."""
    BROKEN = "broken"
    """Compiles at base and not at head; or is launched at base, and its workload does not load at head."""
    FIXED = "fixed"
    """Compiles at head and not at base."""
    FAILING = "failing"
    """Compiles on neither side, or exists at head only and does not compile."""
    ADDED = "added"
    """The launch exists at head only."""
    REMOVED = "removed"
    """The launch exists at base only."""
    UNSUPPORTED = "unsupported"
    """A toolchain has no backend for the target, or does not know the architecture."""


COMPARED_VERDICTS = frozenset({Verdict.UNCHANGED, Verdict.IR_ONLY, Verdict.CHANGED})
"""Verdicts of cases that have code on both sides: the denominator of the blast radius."""
GROUPED_VERDICTS = frozenset({Verdict.CHANGED, Verdict.IR_ONLY, Verdict.BROKEN, Verdict.FIXED})
"""Verdicts of cases that belong to a change group."""


class StageStatus(StrEnum):
    """The result of comparing the artifacts of one stage."""

    IDENTICAL = "identical"
    """The same bytes."""
    EQUIVALENT = "equivalent"
    """The same canonical text. For machine code: the same executable contract (`compare.verdicts`)."""
    CHANGED = "changed"
    ABSENT = "absent"
    """Not compared: at least one side has no such artifact."""


class FailureKind(StrEnum):
    """How a compilation without a result ended."""

    ERROR = "error"
    """A Python exception of the compiler, or of the workload."""
    CRASH = "crash"
    """The compiler process died of a signal (segmentation fault, abort, LLVM ERROR)."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    UNSUPPORTED = "unsupported"
    """The toolchain has no backend for this target."""


BOUNDS = frozenset({FailureKind.TIMEOUT, FailureKind.MEMORY})
"""irdiff stopped the compilation. With more time or memory it may succeed."""


class Component(StrEnum):
    """A part of the toolchain that contributes to a change."""

    PROGRAM = "program"
    """The program that launches: it passes another grid, other arguments or other options."""
    RUNTIME = "runtime"
    """The toolchain passes something else to its launcher."""
    SPECIALIZATION = "specialization"
    FRONTEND = "frontend"
    TTIR_PASSES = "ttir passes"
    TTGIR_PASSES = "ttgir passes"
    LLVM_LOWERING = "llvm lowering"
    LLVM_CODEGEN = "llvm codegen"
    CODEGEN_LIBRARY = "codegen library"
    """A library beside the compiler that generates code with an LLVM of its own."""
    PTXAS = "ptxas"
    ASSEMBLER = "assembler"
    """Any other program that makes the binary from the assembly, together with its linker."""
    NOT_SEPARABLE = "not separable"


@dataclass(frozen=True, kw_only=True)
class Target:
    """One GPU architecture, from `targets/NAME.toml`."""

    name: str
    backend: str
    """Name of the Triton backend: `cuda`, `hip`, or that of a third-party backend."""
    arch: int | str
    """In the form of Triton's `GPUTarget`: the compute capability times ten, or a gfx name."""
    warp_size: int
    title: str
    facts: Mapping[str, Fact]
    """Limits and peak figures that reports use, each named with its unit."""
    sources: Mapping[str, str]
    """Where each fact comes from."""


class RuntimeFile(NamedTuple):
    """A file of an installed Triton that runs at a launch."""

    digest: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """One installed Triton in an environment of its own."""

    spec: str
    version: str
    digest: str
    """SHA-256 over the content of everything that its worker can load, and that may therefore affect the
    code.
    """
    path: str
    """The environment's folder."""
    python: str
    """The path of its interpreter."""
    root: str
    """The folder of its package `triton`."""
    runtime: Mapping[str, RuntimeFile]
    """By name in the package, the files of Triton, and modules loaded with it, that may run between
    `kernel[grid]` and the driver. No case compares them, so a run shows if they differ.
    """
    variables: Mapping[str, str]
    """Environment variables that the worker has and irdiff did not set, because a script that starts it sets
    them.
    """
    programs: Mapping[str, str]
    """By absolute path without links, the SHA-256 of each external program that a compilation may run.
    Scripts are left out, because they may run anything.
    """
    notes: tuple[str, ...]
    """Sentences that a reader must know, such as why nothing is taken from the cache."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings that a user chose: variables in upper case, options of launches in lower case."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """By name, the values of its knobs and options that nobody sets."""

    @property
    def assemblers(self) -> Mapping[str, str]:
        """By path in the package, the SHA-256 of each `ptxas`; by absolute path if it lies outside."""
        return {
            path.rpartition("/triton/")[2]: digest
            for path, digest in self.programs.items()
            if path.rpartition("/")[2].startswith("ptxas")
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """The text or binary of one stage. The store keeps it under its digest."""

    stage: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument of a captured launch: enough to create a valid input without the code of the workload."""

    name: str
    kind: str
    """`tensor`, `scalar`, `constexpr`, `descriptor` (a tensor descriptor that the host creates) or `none`."""
    type: str
    """Triton's type in the signature: `*fp16`, `i32`, `constexpr`, `tensordesc<...>`."""
    value: int | float | bool | str | None
    """The value of a scalar or constexpr. A value that JSON cannot hold is a text."""
    dtype: str | None
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    """In elements."""
    storage_offset: int | None
    """In elements, from the begin of an allocation that is aligned to 256 bytes."""
    alias: int | None
    """Tensors with the same number share one allocation."""
    fill: str | None
    """How an input is filled: `normal`, `zeros`, `randint:0:128`, …"""
    block_shape: tuple[int, ...] | None
    """Set for tensor descriptors only."""


_LATER_FIELDS = frozenset({"unseen", "settings"})
"""Fields of `Launch` that are newer than its keys: while they are empty, a launch keeps its older key."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One `kernel[grid](...)`, as the frontend of one side specialized it for one target."""

    id: str
    """`family/workload:label`, followed by `/kernel` if one label launches several kernels."""
    workload: str
    label: str
    kernel: str
    target: str
    digest: str | None
    """The input digest: SHA-256 of everything that the stages get. This is the IR of the frontend, the
    options, the target, and the content of files that options name. Equal digests mean equal launches. None
    if it cannot be computed.
    """
    source_digest: str
    """SHA-256 of the kernel's own text. It identifies a kernel that was moved."""
    source_path: str
    """The file of the kernel; relative to the root of the corpus if it lies inside."""
    sources: tuple[str, ...]
    """The files of the functions that the frontend compiled for it, in the same form."""
    arguments: tuple[Argument, ...]
    signature: Mapping[str, str]
    constexprs: Mapping[str, str]
    attributes: Mapping[str, str]
    options: Mapping[str, str]
    grid: tuple[int, int, int] | None
    launched: Artifact
    """The text of the stage `launch`."""
    places: tuple[int, ...]
    """The numbers of the calls, within their entry of LAUNCHES, that are this launch. The first call is 1."""
    tier: str
    expected: bool
    """False if the workload says that this launch does not compile for this target."""
    flops: float | None
    min_bytes: float | None
    """The fewest bytes that must move between the GPU and its memory."""
    tolerance: tuple[float, float] | None
    """(relative, absolute) tolerance between two correct results."""
    unseen: tuple[str, ...] = ()
    """Clauses that say what irdiff cannot read of the launch. A launch with such a clause is never equal to
    another.
    """
    source_line: int = 0
    """The line of the kernel's `def`, for annotations; 0 if it is not known."""
    settings: str = ""
    """SHA-256 of the variables, knobs and functions of the compiler that the program had changed before the
    launch. Empty where there are none, or where they have no digest: then `digest` is None, too."""

    @cached_property
    def key(self) -> str:
        """Its key in `Run.launches`: SHA-256 of all fields except the line, which changes with other code in
        the file. The input digest is no key: launches with other arguments may have the same one, and are
        timed with their own arguments.
        """
        said = {name: value for name, value in vars(self).items() if value or name not in _LATER_FIELDS}
        del said["source_line"]
        return hashlib.sha256(_sorted_json.encode(said).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why one side of a case has no code."""

    kind: FailureKind
    stage: str
    """The stage that was running; `capture` if the workload itself failed."""
    message: str
    """One line."""
    signal: str | None = None
    stderr: str = ""
    """The last lines that the process printed, including the traceback."""


@dataclass(frozen=True, kw_only=True)
class CaptureFailure:
    """A launch that the frontend rejects. With the id `workload:*`: a workload that does not load."""

    id: str
    expected: bool
    failure: Failure


@dataclass(frozen=True, kw_only=True)
class Assembler:
    """The `ptxas` that runs, or would run."""

    digest: str | None
    """SHA-256 of the program; None if it is not known."""
    flags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """One side of one case that compiled."""

    artifacts: Mapping[str, Artifact]
    metadata: Mapping[str, object]
    """Triton's own metadata of the kernel (shared memory, warps, clusters, scratch sizes, name)."""
    launcher_args: Mapping[str, object]
    """The toolchain passes these to its launcher: `symbol`, which is the kernel's name in the binary, and
    `packed`, which is the metadata as the backend packs it.
    """
    stage_times_s: Mapping[str, float]
    stage_cpu_s: Mapping[str, float]
    """Processor seconds of a stage, including the programs that it ran."""
    assembler: Assembler | None
    """None if the backend has none."""
    assembler_log: str
    """The output of `ptxas -v`: registers and spills."""
    notes: tuple[str, ...]
    """`no-linker`: there is machine code, and no linked binary."""
    opened: Mapping[str, str] = field(default_factory=dict)
    """By path, the SHA-256 of each file outside of the toolchain that a stage opened; empty if it has no
    digest. Paths in a repository are relative.
    """


@dataclass(frozen=True, kw_only=True)
class Failed:
    """One side of one case that did not compile."""

    failure: Failure
    transient: bool
    """True if the state of the machine may be the cause: the same compilation may end otherwise the next
    time.
    """
    artifacts: Mapping[str, Artifact]
    """The artifacts of the stages before the failure."""
    stage_times_s: Mapping[str, float]
    opened: Mapping[str, str] = field(default_factory=dict)
    """As in `Compiled`."""


Outcome = Compiled | Failed


@dataclass(frozen=True, kw_only=True)
class Sides(Generic[T]):
    """The same thing at base and at head; None if a side has none."""

    base: T
    head: T

    def __iter__(self) -> Iterator[T]:
        return iter((self.base, self.head))

    def items(self) -> tuple[tuple[str, T], tuple[str, T]]:
        """Returns each side with its name."""
        return ("base", self.base), ("head", self.head)

    def of(self, name: str) -> T:
        """name: `base` or `head`."""
        return dict(self.items())[name]

    def map(self, function: Callable[[T], U]) -> Sides[U]:
        return Sides(base=function(self.base), head=function(self.head))

    def zip(self, other: Sides[U]) -> Sides[tuple[T, U]]:
        """Returns the values of both for each side."""
        return Sides(base=(self.base, other.base), head=(self.head, other.head))


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A case before it is compared: the launch of each side; None if a side has no such launch."""

    launch_id: str
    target: Target
    base: Launch | CaptureFailure | None
    head: Launch | CaptureFailure | None
    supported: Sides[bool]
    """For each side, whether its toolchain has the backend of the target."""
    moved: bool = False
    """True if both sides launch it, but its calls come in another order among those of its entry."""

    @property
    def id(self) -> str:
        """`family/workload:label@target`, as in `Case`."""
        return f"{self.launch_id}@{self.target.name}"

    @property
    def workload(self) -> str:
        return self.launch_id.partition(":")[0]

    @property
    def launches(self) -> Sides[Launch | None]:
        """None for a side that has no such launch, or whose frontend rejects it."""
        base, head = (side if isinstance(side, Launch) else None for side in (self.base, self.head))
        return Sides(base=base, head=head)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the difference of one case begins."""

    stage: str
    """The first stage that differs and may have an effect; `launch` if only this text differs."""
    pass_name: str | None
    """The first pass whose difference stays; None if irdiff did not look for it, or did not find it."""
    masked: tuple[str, ...]
    """Earlier passes whose output differed, but whose difference later went away."""
    charged: tuple[Component, ...]
    note: str


class Meaning(StrEnum):
    """Says whether head still computes the same. The order is that of a report."""

    HAZARD = "hazard"
    """Head may compute a wrong result. A witness shows where."""
    ROUNDING = "rounding"
    """The accesses and the control flow are the same, the floating-point operations are not."""
    INTENDED = "intended"
    """Somebody edited the kernel or its launch, and this edit alone makes the difference."""
    NOT_SHOWN = "not shown"
    """irdiff found neither a proof nor a hazard."""
    SAME = "same"
    """irdiff proved that the effects are equal."""


class Bits(StrEnum):
    """Says whether the outputs of both sides are bitwise equal."""

    SAME = "same"
    """The effects are equal, both machine codes contract the same operations, and no threads race on purpose.
    """
    MAY_DIFFER = "may differ"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class CodeLine:
    number: int
    """The number of the line in the canonical text. The first line is 1."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Witness:
    """The lines of both sides that show a difference."""

    base: tuple[CodeLine, ...]
    head: tuple[CodeLine, ...]


class HazardKind(StrEnum):
    ORDER = "order"
    """Two accesses may touch the same bytes, at least one of them writes, and only base keeps their order. Or
    head lacks an operation on an mbarrier, makes it at another address, or uses a result before its wait.
    """
    ACCESS = "access"
    """An access has another predicate, address or width, or only one side has it. Nothing else differs."""
    CONTROL = "control"
    """A branch or a trip count differs, and nothing else does."""
    VALUE = "value"
    """An operation or a constant differs, the operands are equal, and rounding does not explain the
    difference.
    """


@dataclass(frozen=True, kw_only=True)
class Hazard:
    kind: HazardKind
    what: str
    """Says what head's kernel does, as the end of a sentence: `makes a global store under another predicate`.
    """
    witness: Witness
    detail: str = ""
    """The part that only this case has, such as `8192 → 0`."""


class RoundingKind(StrEnum):
    CONTRACTION = "contraction"
    REDUCTION_ORDER = "reduction order"
    PRECISION = "precision"
    """Another approximation, or a conversion to another format."""
    FAST_MATH = "fast-math flags"
    SPECIAL_VALUES = "NaN or signed zero"


@dataclass(frozen=True, kw_only=True)
class Rounding:
    kind: RoundingKind
    base: str
    """The operations of base that differ, without their registers."""
    head: str
    witness: Witness

    @property
    def operations(self) -> str:
        """`` `add.f32` → `mul.f32` ``; empty if neither side has an operation that the other lacks."""
        if self.base and self.head and self.base != self.head:
            return f"`{self.base}` → `{self.head}`"
        alone = "" if self.base == self.head else f" at {'base' if self.base else 'head'} alone"
        return f"`{self.base or self.head}`{alone}" if self.base or self.head else ""


@dataclass(frozen=True, kw_only=True)
class NotShown:
    reason: str
    detail: str = ""
    witness: Witness | None = None
    is_unread: bool = False
    """True if the text was not compared at all, because irdiff cannot read a part of it."""


@dataclass(frozen=True, kw_only=True)
class Harmless:
    """A difference that is proved to change nothing, such as one more barrier."""

    what: str


@dataclass(frozen=True, kw_only=True)
class Effects:
    """How the kernel's behaviour differs, read from one stage's text on both sides, with the evidence."""

    kind: Meaning
    stage: str
    bits: Bits
    hazards: tuple[Hazard, ...] = ()
    roundings: tuple[Rounding, ...] = ()
    not_shown: tuple[NotShown, ...] = ()
    harmless: tuple[Harmless, ...] = ()

    @property
    def is_read(self) -> bool:
        return not any(each.is_unread for each in self.not_shown)

    @property
    def said(self) -> tuple[str, ...]:
        """Returns a sentence for each difference, the gravest first."""
        return (
            *(f"{each.what}: {each.detail}" if each.detail else each.what for each in self.hazards),
            *(f"{each.kind}: {each.operations}".removesuffix(": ") for each in self.roundings),
            *(f"{each.reason}: {each.detail}" if each.detail else each.reason for each in self.not_shown),
            *(each.what for each in self.harmless),
        )


class Expected(StrEnum):
    """The prediction of how head's time changes."""

    SLOWER = "likely slower"
    FASTER = "likely faster"
    UNKNOWN = "not known"
    NO_CHANGE = "no change expected"


@dataclass(frozen=True, kw_only=True)
class ExpectedTime:
    expected: Expected
    why: str
    """The counts that decide, or what is missing."""


class CauseKind(StrEnum):
    """Says how to read the fields of a cause."""

    EFFECT = "effect"
    """The kernel's behaviour differs in `count` places. The subject is a sentence, the detail says how."""
    FAILURE = "failure"
    """A side does not compile. The detail is the reason."""
    LAUNCH = "launch"
    """An option or a part of the specialization has another value. The detail names both values."""
    NUMBER = "number"
    """Head has `count` more of the subject, or fewer."""
    REPLACED = "replaced"
    """Head has one thing in place of another, `count` times. The subject names both."""
    VALUE = "value"
    """The subject is in the same place, with another value. The detail names both values."""
    STATE = "state"
    """The subject is a sentence."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One difference of a case, in a form that can be counted over the cases of a group."""

    kind: CauseKind
    subject: str
    """Equal for all cases with this difference. Code stands in backticks."""
    count: int
    in_loops: int
    """How many of `count` are in loops."""
    ahead: str
    """For synchronization, the operation behind it, if this is the same one everywhere."""
    detail: str
    """The part that only this case has."""

    @classmethod
    def uncounted(cls, kind: CauseKind, subject: str, detail: str = "") -> Cause:
        return cls(kind=kind, subject=subject, count=0, in_loops=0, ahead="", detail=detail)


@dataclass(frozen=True, kw_only=True)
class CaseSummary:
    """The description of one case in a report, apart from its group."""

    title: str
    severity: str
    """A `ReportClass`."""
    reasons: tuple[str, ...]
    """Why the case has this class, the gravest reason first."""
    causes: tuple[Cause, ...]
    """The inputs of the case's title, and of its group's title."""
    effects: Effects | None = None
    """None if irdiff read no text of both sides."""


@dataclass(frozen=True, kw_only=True)
class ComparedCase:
    """A case after the steps compare and attribute."""

    id: str
    workload: str
    kernel: str
    target: str
    tier: str
    verdict: Verdict
    origin: Origin | None
    """Before the step attribute, it has only a stage."""
    stages: Mapping[str, StageStatus]
    facts: Sides[Mapping[str, Fact]]
    """Figures of the binary and of its instructions; empty if the case did not get that far."""
    findings: tuple[Finding, ...]
    error: str | None
    """One line if a side failed; else None."""
    failures: Sides[Failure | None]
    artifacts: Sides[Mapping[str, Artifact]]
    launches: Sides[str | None]
    """Keys of the captured launches in `Run.launches`."""
    metadata: Sides[Mapping[str, object]]
    """Triton's metadata of cases that were compared in machine code."""
    compile_s: Sides[Mapping[str, float]]
    """The seconds that each stage took when it was compiled, perhaps in an earlier run."""
    renamed_from: str | None
    """The id at base, if the kernel or workload was renamed or moved, or the launch has another number."""
    edit: str | None
    """Digest of the concrete change, including constants, types and positions (see `edit_digest`). A person
    accepts this change and no other. None if nothing changed.
    """


@dataclass(frozen=True, kw_only=True)
class Case(ComparedCase):
    """A case of a run."""

    nondeterministic: tuple[str, ...]
    """The sides, `base` or `head`, that gave different code when they compiled the case again."""
    group: str | None
    """The id of the change group it belongs to."""
    summary: CaseSummary | None
    """None if the case belongs to no group."""
    work: Sides[Work | NotCountedWork | None] = field(default_factory=lambda: Sides(base=None, head=None))
    """The work of the launch on each side, or why it was not counted. None for cases that did not change,
    and for a side without a launch, without a binary, or with a backend whose code irdiff cannot count.
    """
    expected: ExpectedTime | None = None
    """None for cases that did not change, or that only one side has."""
    unsteady_stages: Mapping[str, str] = field(default_factory=dict)
    """By nondeterministic side, the first stage whose output differed. Empty in runs of earlier versions."""
    not_recompiled: tuple[str, ...] = ()
    """The sides that gave no answer when the determinism check asked for the case again, or for every case of
    its group that it chose.
    """


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The launches that are compared."""

    cases: tuple[str, ...]
    """Patterns of the form `family/workload:label@target`; if empty, all cases."""
    tiers: tuple[str, ...]
    """If empty, all tiers."""
    configs: int | None
    """How many configs of each autotuner are compared, from the first on; None for all."""
    shard: tuple[int, int]
    """(k, n): the k-th of n parts of the cases. The first is 1."""


EVERY_LAUNCH = Selection(cases=(), tiers=(), configs=None, shard=(1, 1))


@dataclass(frozen=True, kw_only=True)
class Options(Selection):
    """The options of one comparison: which launches are compared, and how much is done."""

    stages: tuple[str, ...]
    """The stages to compare; if empty, all stages of the backend."""
    use_cache: bool
    """If true, equal inputs of equal toolchains count as equal, and are not compiled."""
    recheck: bool
    """If true, at least one changed case of each group is compiled again (the determinism check)."""
    attribute: bool
    """If true, irdiff looks for the pass and the components behind each change. This costs about one more
    compilation of the changed cases.
    """


DEFAULT_OPTIONS = Options(**vars(EVERY_LAUNCH), stages=(), use_cache=True, recheck=True, attribute=True)
"""The options if a user chooses nothing."""


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A side, in the form that a run records."""

    spec: str
    version: str
    digest: str
    corpus: str
    """SHA-256 of the corpus content used on this side."""
    ptxas: Mapping[str, str]
    """As in `Toolchain.assemblers`."""
    note: str
    revision: str
    """The revision of a repository of kernels, such as `main 1a2b3c4`; empty for other sides."""

    @classmethod
    def of_toolchain(cls, toolchain: Toolchain, *, corpus: str, note: str, revision: str) -> Revision:
        return cls(
            spec=toolchain.spec,
            version=toolchain.version,
            digest=toolchain.digest,
            corpus=corpus,
            ptxas=toolchain.assemblers,
            note=note,
            revision=revision,
        )

    @classmethod
    def of_tree(cls, *, spec: str, digest: str, note: str) -> Revision:
        """For a side without a toolchain: its tree identifies it."""
        return cls(spec=spec, version="", digest=digest, corpus="", ptxas={}, note=note, revision="")

    @property
    def assemblers(self) -> Mapping[str, str]:
        """The same as in `Toolchain.assemblers`."""
        return self.ptxas


class FileChange(StrEnum):
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """A file of a repository that differs between base and head."""

    path: str
    change: FileChange
    compiled_by: int
    """The number of cases for which the frontend compiled a function of it, on either side."""
    read_by: int
    """The number of cases whose capture opened it, including those that compile it."""
    not_run: tuple[str, ...]
    """Changed functions and new kernels that neither side ran or compiled, so they were not compared:
    `make.f` stands in `make`, and of `f (uses B)` only B differs. A file that no launch
    reads is listed only if it holds kernels.
    """


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which changed files of a repository of kernels were compared."""

    files: tuple[ChangedFile, ...]
    read_by: int
    """The number of cases that read at least one of the files."""


@dataclass(frozen=True, kw_only=True)
class RuntimeEdit:
    """A file of the runtime that differs between base and head."""

    path: str
    """Its name in the package."""
    diff: tuple[str, ...]
    """Hunks of a unified diff."""


@dataclass(frozen=True, kw_only=True)
class EditedFile:
    """A file of a repository that differs between base and head."""

    path: str
    change: FileChange
    feeds: tuple[str, ...]
    """The parts it belongs to, in words: `native code`, `Python of the backend amd`, `tests`."""
    counts: bool
    """True if it may affect generated code."""


@dataclass(frozen=True, kw_only=True)
class Edited:
    """The files that differ between two revisions of one repository, before anything is built from them."""

    files: tuple[EditedFile, ...]
    of_kernels: bool
    """True for a repository of kernels, false for a checkout of Triton."""
    identical: bool
    """True if no file counts, so that both revisions are the same compiler or the same code. Then nothing was
    installed or built, and there are no cases.
    """


@dataclass(frozen=True, kw_only=True)
class EditedLine:
    """A line of head's compiler that was added or changed, and has code."""

    number: int
    text: str
    cases: int
    """The number of cases that run it."""


@dataclass(frozen=True, kw_only=True)
class EditedSource:
    """One edited file of head's compiler, line by line."""

    path: str
    hunks: tuple[tuple[int, int], ...]
    """(first, last) line of each run of added or changed lines, including those without code, such as
    declarations and comments.
    """
    lines: tuple[EditedLine, ...]
    """The added or changed lines that have code."""


@dataclass(frozen=True, kw_only=True)
class EditedLines:
    """Which edited lines of head's compiler run when a counting build of it compiles the cases."""

    sources: tuple[EditedSource, ...]
    cases: int
    """The number of cases whose lines were counted."""
    unmeasured: int
    """The number of cases without counters, because the compiler crashed."""
    executed_by: int
    """The number of cases that run at least one edited line."""
    examples: tuple[str, ...]
    """The first of these cases."""
    without_lines: tuple[str, ...]
    """Native inputs that differ and have no lines that run: `.td`, CMake, tables."""


class TestStatus(StrEnum):
    """The answer for a test of a repository."""

    __test__ = False

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, kw_only=True)
class TestAnswer:
    """The answer for one test on one target."""

    __test__ = False

    name: str
    """The name that pytest accepts in the root of the repository."""
    target: str
    status: TestStatus
    reason: str
    cases: tuple[str, ...]
    """Ids of the changed cases."""


@dataclass(frozen=True, kw_only=True)
class TestsAnswer:
    """The answers for the tests whose launches are the cases of a comparison."""

    __test__ = False

    tests: tuple[TestAnswer, ...]
    collected: int
    """The number of tests that there are. A sample of them ran."""
    cases: int
    changed_cases: int
    uncollected: tuple[str, ...]
    """Files of tests that pytest could not collect."""

    def names(self, status: TestStatus) -> tuple[str, ...]:
        """Returns the tests that have this status on all targets; for `changed`, on at least one target."""
        those = {test.name for test in self.tests if test.status is status}
        if status is TestStatus.CHANGED:
            return tuple(sorted(those))
        return tuple(sorted(those - {test.name for test in self.tests if test.status is not status}))


@dataclass(frozen=True, kw_only=True)
class StageRadius:
    compared: int
    changed: int


@dataclass(frozen=True, kw_only=True)
class Radius:
    """Blast radius of one target: changed ÷ compared, always with the counts."""

    compared: int
    changed: int
    fraction: float
    stages: Mapping[str, StageRadius]


@dataclass(frozen=True, kw_only=True)
class Summary:
    cases: int
    compared: int
    verdicts: Mapping[Verdict, int]
    radius: Mapping[str, Radius]


@dataclass(frozen=True, kw_only=True)
class ChangeGroup:
    """Cases that changed in the same way, by the same pass."""

    id: str
    """Digest of the abstracted change and its origin. Equal ids mean the same change, in any two runs."""
    title: str
    """One line that says what changed."""
    severity: str
    """The gravest class of its cases: a `ReportClass`."""
    origin_stage: str
    pass_name: str | None
    charged: tuple[Component, ...]
    representative: str
    """The id of the case with the smallest change among those of the gravest class."""
    members: tuple[str, ...]
    similarity: float
    """The mean share of changed lines that a case has in common with the representative, from 0 to 1."""
    reasons: tuple[str, ...]
    """Why its representative has this class."""
    edit: tuple[str, ...]
    """The abstracted change: lines that begin with `-` or `+`."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of one comparison: the content of `run.json`."""

    schema: str
    irdiff_version: str
    normalizer_version: str
    created: str
    """The time in UTC, in the form of ISO 8601."""
    command: tuple[str, ...]
    options: Options
    base: Revision
    head: Revision
    targets: tuple[Target, ...]
    environment: Mapping[str, str]
    """Variables that irdiff set in the environment of the compilers, and `address-randomization`: whether it
    could be turned off.
    """
    summary: Summary
    cases: tuple[Case, ...]
    launches: Mapping[str, Launch]
    groups: tuple[ChangeGroup, ...]
    reach: Reach | None
    """Set for two revisions of one repository of kernels."""
    edited: Edited | None
    """Set for two revisions of one repository."""
    edited_lines: EditedLines | None
    """Set if the user asked for it, and head's compiler was also built to count lines."""
    cut_from: str
    """For a shard, SHA-256 of the workloads and targets of the whole comparison; empty for a whole run."""
    runtime: tuple[RuntimeEdit, ...]
    """The files that may run between `kernel[grid]` and the driver, and that differ. No case compares them.
    """
    notes: tuple[str, ...]
    """Sentences that say what was not compared, and why, and other notes."""
    unexamined: tuple[str, ...] = ()
    """Clauses of the first sentence of a report: what the sides have, or may have, that no case compared."""
    tests: TestsAnswer | None = None
    """Set if the cases are the launches of a repository's tests."""
    duration_s: float

    @property
    def is_of_kernel_repository(self) -> bool:
        """True if a side is a revision of a repository of kernels."""
        return bool(self.base.revision or self.head.revision)
