"""Every domain type of irdiff. Read this file and `pipeline.py` to know the program.

The words are those of the design: a *workload* launches *kernels*; a *launch* × a *target* is a
*case*; each *side* (base, head) compiles the case to *artifacts*, one a *stage*; the comparison of
the artifacts gives each stage a *status* and the case a *verdict*. `Run` is what one comparison
found and is written to `run.json` as it stands here, so a change of a field is a change of schema.

Standard library only: the worker protocol, reports and tests all import it.
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
"""`json.dumps` makes one each time, and a large run has 80,000 launches."""


class Verdict(StrEnum):
    """What a reviewer is told of one case."""

    UNCHANGED = "unchanged"
    """The machine code and every compared stage above it are the same."""
    IR_ONLY = "ir-only"
    """Some IR changed, the machine code did not."""
    CHANGED = "changed"
    """The executing code, or what the launch passes to it, differs, or could not be compared."""
    BROKEN = "broken"
    """Compiles at base, not at head; or is launched at base, and its workload does not load at head."""
    FIXED = "fixed"
    """Compiles at head, not at base."""
    FAILING = "failing"
    """Compiles on neither side, or exists at head only and does not compile."""
    ADDED = "added"
    """The launch exists at head only."""
    REMOVED = "removed"
    """The launch exists at base only."""
    UNSUPPORTED = "unsupported"
    """A toolchain has no backend for the target, or does not know the architecture."""


COMPARED_VERDICTS = frozenset({Verdict.UNCHANGED, Verdict.IR_ONLY, Verdict.CHANGED})
"""Verdicts of cases whose code was there on both sides: the denominator of a blast radius."""
GROUPED_VERDICTS = frozenset({Verdict.CHANGED, Verdict.IR_ONLY, Verdict.BROKEN, Verdict.FIXED})
"""Verdicts of the cases that change groups take."""


class StageStatus(StrEnum):
    """How the artifacts of one stage compare."""

    IDENTICAL = "identical"
    """The same bytes."""
    EQUIVALENT = "equivalent"
    """The same canonical text, or for machine code: the same executable contract (`compare.verdicts`)."""
    CHANGED = "changed"
    ABSENT = "absent"
    """Not compared: at least one side has no such artifact."""


class FailureKind(StrEnum):
    """How a compilation ended when it gave no binary."""

    ERROR = "error"
    """A Python exception of the compiler, or of the workload."""
    CRASH = "crash"
    """The compiler process died of a signal (segmentation fault, abort, LLVM ERROR)."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    UNSUPPORTED = "unsupported"
    """The toolchain has no backend for this target."""


BOUNDS = frozenset({FailureKind.TIMEOUT, FailureKind.MEMORY})
"""How a compilation ends that irdiff stopped: with more time or memory it may give code."""


class Component(StrEnum):
    """The part of a toolchain that a change is charged to."""

    PROGRAM = "program"
    """What launches: another grid, other arguments, other options."""
    RUNTIME = "runtime"
    """What the toolchain hands to its launcher."""
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
    """Any other program that makes the binary of the assembly, its linker with it."""
    NOT_SEPARABLE = "not separable"


@dataclass(frozen=True, kw_only=True)
class Target:
    """One GPU architecture, from `targets/NAME.toml`."""

    name: str
    backend: str
    """Name of the Triton backend: `cuda`, `hip`, or that of a third-party backend."""
    arch: int | str
    """As Triton's `GPUTarget` takes it: compute capability times ten, or a gfx name."""
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
    """SHA-256 over the content of everything that its worker can load: what reaches generated code."""
    path: str
    """The environment's folder."""
    python: str
    """Its interpreter."""
    root: str
    """The folder of its package `triton`."""
    runtime: Mapping[str, RuntimeFile]
    """The files of Triton, and modules loaded with it, that may run between `kernel[grid]` and the driver, by
    their names in the package. Where they differ, a run shows it: no case compares them."""
    variables: Mapping[str, str]
    """What its worker finds in its environment and irdiff did not set: a script that starts it set them."""
    programs: Mapping[str, str]
    """SHA-256 of each external program that a compilation may run, by its absolute path without links.
    Scripts are not here: they may run anything."""
    notes: tuple[str, ...]
    """What a reader must know of how it was identified."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What a user gives its compiler on purpose: variables in upper case, options of launches in lower
    case."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """What its knobs and options are where nobody sets them, by their names."""

    @property
    def assemblers(self) -> Mapping[str, str]:
        """SHA-256 of each `ptxas` by its path in the package, or by its whole path where it lies outside."""
        return {
            path.rpartition("/triton/")[2]: digest
            for path, digest in self.programs.items()
            if path.rpartition("/")[2].startswith("ptxas")
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """The text or binary of one stage, held by the store under its digest."""

    stage: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument of a captured launch, enough to make a valid input without the workload's code."""

    name: str
    kind: str
    """`tensor`, `scalar`, `constexpr`, `descriptor` (a host-made tensor descriptor) or `none`."""
    type: str
    """Triton's type in the signature: `*fp16`, `i32`, `constexpr`, `tensordesc<...>`."""
    value: int | float | bool | str | None
    """Scalars and constexprs; the repr of what JSON cannot hold."""
    dtype: str | None
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    """In elements."""
    storage_offset: int | None
    """In elements, from a 256-byte aligned allocation."""
    alias: int | None
    """Tensors with the same number share one allocation."""
    fill: str | None
    """How a test input is made: `normal`, `zeros`, `randint:0:128`, …"""
    block_shape: tuple[int, ...] | None
    """Of a tensor descriptor."""


_LATER_FIELDS = frozenset({"unseen", "settings"})
"""Of `Launch`: while they are empty, a launch has the key that it had before there was such a field."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One `kernel[grid](...)` as one side's own frontend specialized it for one target."""

    id: str
    """`family/workload:label`, followed by `/kernel` where one label launches several kernels."""
    workload: str
    label: str
    kernel: str
    target: str
    digest: str | None
    """The input digest: SHA-256 of all that the stages are given, the frontend's IR, options, target,
    content of the files that options name. Equal digests are equal launches. None where it cannot be made."""
    source_digest: str
    """SHA-256 of the kernel's own text: matches a moved kernel."""
    source_path: str
    """Of the kernel, relative to the corpus root where it lies inside."""
    sources: tuple[str, ...]
    """Files of the functions that the frontend compiled for it, likewise."""
    arguments: tuple[Argument, ...]
    signature: Mapping[str, str]
    constexprs: Mapping[str, str]
    attributes: Mapping[str, str]
    options: Mapping[str, str]
    grid: tuple[int, int, int] | None
    launched: Artifact
    """What is launched, and how: the text of the stage `launch`."""
    places: tuple[int, ...]
    """Which calls of its entry of LAUNCHES are this launch, from 1."""
    tier: str
    expected: bool
    """Whether the workload says that this launch compiles for this target."""
    flops: float | None
    min_bytes: float | None
    """The least bytes that must move between the GPU and its memory."""
    tolerance: tuple[float, float] | None
    """Relative and absolute tolerance between two right results."""
    unseen: tuple[str, ...] = ()
    """What of the launch irdiff cannot read, as clauses; a launch that has it is never equal to another."""
    source_line: int = 0
    """Of the kernel's `def`, for annotations; 0 where it is not known."""
    settings: str = ""
    """SHA-256 of the variables, knobs and functions of the compiler that the program had changed before the
    launch. Empty where there are none, or where they have no digest: then `digest` is None, too."""

    @cached_property
    def key(self) -> str:
        """What names it in `Run.launches`: SHA-256 of all of it but the line, which is not the kernel's own.
        Launches with other arguments may have one input digest, and are timed with their own arguments.
        """
        said = {name: value for name, value in vars(self).items() if value or name not in _LATER_FIELDS}
        del said["source_line"]
        return hashlib.sha256(_sorted_json.encode(said).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why one side of a case gave no code."""

    kind: FailureKind
    stage: str
    """The stage that was being made when it ended; `capture` for the workload itself."""
    message: str
    """One line."""
    signal: str | None = None
    stderr: str = ""
    """The last lines the process printed, traceback included."""


@dataclass(frozen=True, kw_only=True)
class CaptureFailure:
    """A launch that the frontend did not take, or (`workload:*`) a workload that does not load."""

    id: str
    expected: bool
    failure: Failure


@dataclass(frozen=True, kw_only=True)
class Assembler:
    """The `ptxas` that runs, or would run."""

    digest: str | None
    """SHA-256 of the program; None for one that is not known by its content."""
    flags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """One side of one case that compiled."""

    artifacts: Mapping[str, Artifact]
    metadata: Mapping[str, object]
    """Triton's own metadata of the kernel (shared memory, warps, clusters, scratch sizes, name)."""
    launcher_args: Mapping[str, object]
    """What the toolchain hands to its launcher: `symbol`, the kernel's name in the binary, and `packed`."""
    stage_times_s: Mapping[str, float]
    stage_cpu_s: Mapping[str, float]
    """Processor seconds of a stage, those of the programs it ran too."""
    assembler: Assembler | None
    """None where the backend has none."""
    assembler_log: str
    """What `ptxas -v` printed: registers and spills."""
    notes: tuple[str, ...]
    """`no-linker`: the machine code is there, the linked binary is not."""
    opened: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file outside of the toolchain that a stage opened, by its path, which is relative in a
    repository; empty for one without a digest."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """One side of one case that did not compile."""

    failure: Failure
    transient: bool
    """Whether it may say more of the machine at that moment than of the code: the same compilation may end
    otherwise the next time."""
    artifacts: Mapping[str, Artifact]
    """Of the stages before the failure."""
    stage_times_s: Mapping[str, float]
    opened: Mapping[str, str] = field(default_factory=dict)
    """As of `Compiled`."""


Outcome = Compiled | Failed


@dataclass(frozen=True, kw_only=True)
class Sides(Generic[T]):
    """The same thing at base and at head; None where a side has none."""

    base: T
    head: T

    def __iter__(self) -> Iterator[T]:
        return iter((self.base, self.head))

    def items(self) -> tuple[tuple[str, T], tuple[str, T]]:
        """Each side with its name."""
        return ("base", self.base), ("head", self.head)

    def of(self, name: str) -> T:
        """The side `base` or `head`."""
        return dict(self.items())[name]

    def map(self, function: Callable[[T], U]) -> Sides[U]:
        return Sides(base=function(self.base), head=function(self.head))

    def zip(self, other: Sides[U]) -> Sides[tuple[T, U]]:
        """What both have of each side."""
        return Sides(base=(self.base, other.base), head=(self.head, other.head))


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A case before it is compared: what each side launches; None where a side has no such launch."""

    launch_id: str
    target: Target
    base: Launch | CaptureFailure | None
    head: Launch | CaptureFailure | None
    supported: Sides[bool]
    """Whether each side's toolchain has the target's backend."""
    moved: bool = False
    """Whether both sides launch it, and its calls come in another order among those of its entry."""

    @property
    def id(self) -> str:
        """`family/workload:label@target`, as in `Case`."""
        return f"{self.launch_id}@{self.target.name}"

    @property
    def workload(self) -> str:
        return self.launch_id.partition(":")[0]

    @property
    def launches(self) -> Sides[Launch | None]:
        """None for a side that has no such launch, or whose frontend refused it."""
        base, head = (side if isinstance(side, Launch) else None for side in (self.base, self.head))
        return Sides(base=base, head=head)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the difference of one case begins."""

    stage: str
    """The first stage that differs and is not shown to have no effect; `launch` if only that differs."""
    pass_name: str | None
    """The pass whose output first differs for good; None where it was not looked for or not found."""
    masked: tuple[str, ...]
    """Earlier passes whose output differed and came together again."""
    charged: tuple[Component, ...]
    note: str


class Meaning(StrEnum):
    """What a change does to what a kernel computes, in the order of a report."""

    HAZARD = "hazard"
    """Head may give a wrong result: a witness shows where."""
    ROUNDING = "rounding"
    """The same accesses and control flow, other floating-point operations."""
    INTENDED = "intended"
    """An edited kernel or launch asks for it."""
    NOT_SHOWN = "not shown"
    """The prover stopped."""
    SAME = "same"
    """Proved: equal effects."""


class Bits(StrEnum):
    """Whether both sides compute the same bits."""

    SAME = "same"
    """The effects are equal, no later step may contract floating-point operations, and no threads race."""
    MAY_DIFFER = "may differ"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class CodeLine:
    number: int
    """In the canonical text, from 1."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Witness:
    """The lines of both sides that a reviewer compares."""

    base: tuple[CodeLine, ...]
    head: tuple[CodeLine, ...]


class HazardKind(StrEnum):
    ORDER = "order"
    """Two accesses may touch the same bytes, one writes, and only base orders them."""
    ACCESS = "access"
    """Another predicate, address, width or number of accesses, where all else is equal."""
    CONTROL = "control"
    """Another branch or trip count, where all else is equal."""
    VALUE = "value"
    """Another operation or constant on equal operands, that rounding does not explain."""


@dataclass(frozen=True, kw_only=True)
class Hazard:
    kind: HazardKind
    what: str
    """What head does, as a predicate of the kernel: `makes a global store under another predicate`."""
    witness: Witness
    detail: str = ""
    """What is this case's own: `8192 → 0`."""


class RoundingKind(StrEnum):
    CONTRACTION = "contraction"
    REDUCTION_ORDER = "reduction order"
    PRECISION = "precision"
    """Of an approximation or a conversion."""
    FAST_MATH = "fast-math flags"
    SPECIAL_VALUES = "NaN or signed zero"


@dataclass(frozen=True, kw_only=True)
class Rounding:
    kind: RoundingKind
    base: str
    """The operations of base that differ, without registers."""
    head: str
    witness: Witness

    @property
    def operations(self) -> str:
        """`` `add.f32` → `mul.f32` ``; empty where neither side has an operation of its own."""
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
    """Whether nothing of the text was compared, since a part of it is not known."""


@dataclass(frozen=True, kw_only=True)
class Harmless:
    """A difference that is shown to change nothing, such as one more barrier."""

    what: str


@dataclass(frozen=True, kw_only=True)
class Effects:
    """How what a case does differs, as the text of one stage on both sides says, with the evidence."""

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
        """A sentence for each difference, the gravest first."""
        return (
            *(f"{each.what}: {each.detail}" if each.detail else each.what for each in self.hazards),
            *(f"{each.kind}: {each.operations}".removesuffix(": ") for each in self.roundings),
            *(f"{each.reason}: {each.detail}" if each.detail else each.reason for each in self.not_shown),
            *(each.what for each in self.harmless),
        )


class Expected(StrEnum):
    """What is expected of head's time, without a measurement."""

    SLOWER = "likely slower"
    FASTER = "likely faster"
    UNKNOWN = "not known"
    NO_CHANGE = "no change expected"


@dataclass(frozen=True, kw_only=True)
class ExpectedTime:
    expected: Expected
    why: str
    """The counts that decide it, or what is missing."""


class CauseKind(StrEnum):
    """What a cause says of its subject."""

    EFFECT = "effect"
    """What it does differs, `count` times: the subject is a sentence, the detail says how."""
    FAILURE = "failure"
    """A side does not compile: the detail is the reason."""
    LAUNCH = "launch"
    """An option or a part of the specialization has another value: the detail."""
    NUMBER = "number"
    """There are `count` more of it, or fewer."""
    REPLACED = "replaced"
    """One thing stands for another, `count` times; the subject names both."""
    VALUE = "value"
    """It stands where it stood and says something else: the detail."""
    STATE = "state"
    """The subject is a sentence."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One thing that the edit of a case does, in a form that can be counted over the cases of a group."""

    kind: CauseKind
    subject: str
    """The same for cases that do the same. Code stands in backticks."""
    count: int
    in_loops: int
    """How many of them lie in loops."""
    ahead: str
    """Of synchronization: the operation that it stands before, where all stand before the same one."""
    detail: str
    """What is this case's own."""

    @classmethod
    def uncounted(cls, kind: CauseKind, subject: str, detail: str = "") -> Cause:
        return cls(kind=kind, subject=subject, count=0, in_loops=0, ahead="", detail=detail)


@dataclass(frozen=True, kw_only=True)
class CaseSummary:
    """What is told of one case: of its own edit and figures, not of its group's."""

    title: str
    severity: str
    """Its class in a report: a `ReportClass`."""
    reasons: tuple[str, ...]
    """Why it has that class, the gravest reason first."""
    causes: tuple[Cause, ...]
    """What its title is made from, and that of its group."""
    effects: Effects | None = None
    """None where no text of both sides was read."""


@dataclass(frozen=True, kw_only=True)
class ComparedCase:
    """A case, launch × target, as the steps up to the comparison and its attribution know it."""

    id: str
    workload: str
    kernel: str
    target: str
    tier: str
    verdict: Verdict
    origin: Origin | None
    """Before attribution, only its stage."""
    stages: Mapping[str, StageStatus]
    facts: Sides[Mapping[str, Fact]]
    """Resource and instruction facts; empty where the case was not taken that far."""
    findings: tuple[Finding, ...]
    error: str | None
    """One line where a side failed, None otherwise."""
    failures: Sides[Failure | None]
    artifacts: Sides[Mapping[str, Artifact]]
    launches: Sides[str | None]
    """Keys of the captured launches in `Run.launches`."""
    metadata: Sides[Mapping[str, object]]
    """Triton's metadata, kept for cases that were compared in machine code."""
    compile_s: Sides[Mapping[str, float]]
    """Seconds a stage took when it was compiled (it may have been an earlier run)."""
    renamed_from: str | None
    """The id at base, where the kernel or workload was renamed or moved, or a launch has another number."""
    edit: str | None
    """Digest of the concrete edit: constants, types, positions (see `edit_digest`). Only such an edit can be
    accepted. None where nothing changed."""


@dataclass(frozen=True, kw_only=True)
class Case(ComparedCase):
    """A case as a run has it."""

    nondeterministic: tuple[str, ...]
    """Sides that disagreed with themselves when they were asked again: `base`, `head`."""
    group: str | None
    """The id of the change group it belongs to."""
    summary: CaseSummary | None
    """None where no group takes the case."""
    work: Sides[Work | NotCountedWork | None] = field(default_factory=lambda: Sides(base=None, head=None))
    """What the launch executes on each side; None for cases that did not change, and where nothing counts
    it."""
    expected: ExpectedTime | None = None
    """None for cases that did not change, or that one side alone has."""
    unsteady_stages: Mapping[str, str] = field(default_factory=dict)
    """Nondeterministic side → the first stage that it made differently. Empty in runs of earlier versions."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which launches of all workloads count."""

    cases: tuple[str, ...]
    """Patterns `family/workload:label@target`; none means all."""
    tiers: tuple[str, ...]
    """None means all."""
    configs: int | None
    """The most configs of an autotuner that count, from the first; None: all."""
    shard: tuple[int, int]
    """(k, n): the k-th of n parts of the cases, from 1."""


EVERY_LAUNCH = Selection(cases=(), tiers=(), configs=None, shard=(1, 1))


@dataclass(frozen=True, kw_only=True)
class Options(Selection):
    """What a user chose of one comparison: the launches, and how much is done with them."""

    stages: tuple[str, ...]
    """Stages to compare; none means all that the backend has."""
    use_cache: bool
    """Whether equal inputs of equal toolchains are taken as equal without compiling."""
    recheck: bool
    """Whether a changed case of each group, or more, is made again: does a side agree with itself?"""
    attribute: bool
    """Whether the pass and the components behind each change are looked for: about one more compilation
    of the changed cases."""


DEFAULT_OPTIONS = Options(**vars(EVERY_LAUNCH), stages=(), use_cache=True, recheck=True, attribute=True)
"""What is compared where a user chose nothing."""


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A side as the run records it."""

    spec: str
    version: str
    digest: str
    corpus: str
    """SHA-256 of the corpus content used on this side."""
    ptxas: Mapping[str, str]
    """SHA-256 of each `ptxas` by its path in the package, or by its whole path where it lies outside."""
    note: str
    revision: str
    """Of a repository of kernels: `main 1a2b3c4`; empty for another side."""

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
        """Of a side that has no toolchain: it is known by its tree."""
        return cls(spec=spec, version="", digest=digest, corpus="", ptxas={}, note=note, revision="")

    @property
    def assemblers(self) -> Mapping[str, str]:
        """As `Toolchain.assemblers`."""
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
    """Cases for which the frontend compiled a function of it, on either side."""
    read_by: int
    """Cases whose capture opened it, those that compile it among them."""
    not_run: tuple[str, ...]
    """Functions that changed, and new kernels, that no capture ran and no frontend compiled on either side;
    of a file that is not read only where it holds kernels. What they do was not compared."""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How far the changes of a repository of kernels reach."""

    files: tuple[ChangedFile, ...]
    read_by: int
    """Cases that read at least one of the files."""


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
    """What is made of it, in words: `native code`, `Python of the backend amd`, `tests`."""
    counts: bool
    """Whether generated code could follow it."""


@dataclass(frozen=True, kw_only=True)
class Edited:
    """What differs between two revisions of one repository, looked at before anything is made of them."""

    files: tuple[EditedFile, ...]
    of_kernels: bool
    """Whether it is a repository of kernels, not a checkout of Triton."""
    identical: bool
    """Whether no file counts: both revisions make the same compiler, or have the same code. Then nothing
    was installed or built, and there are no cases."""


@dataclass(frozen=True, kw_only=True)
class EditedLine:
    """A line of head's compiler that was added or changed, and that holds code."""

    number: int
    text: str
    cases: int
    """How many cases run it."""


@dataclass(frozen=True, kw_only=True)
class EditedSource:
    """One file of an edit, by line."""

    path: str
    hunks: tuple[tuple[int, int], ...]
    """First and last of lines in a row that were added or changed, those without code (declarations,
    comments) among them."""
    lines: tuple[EditedLine, ...]
    """Those that hold code."""


@dataclass(frozen=True, kw_only=True)
class EditedLines:
    """Which edited lines of head's compiler run, as one that counts them compiles the cases."""

    sources: tuple[EditedSource, ...]
    cases: int
    """Those whose lines were counted."""
    unmeasured: int
    """Those that left no counters: the compiler crashed."""
    executed_by: int
    """Cases that run at least one edited line."""
    examples: tuple[str, ...]
    """The first of them."""
    without_lines: tuple[str, ...]
    """Native inputs that differ and have no lines that run: `.td`, CMake, tables."""


class TestStatus(StrEnum):
    """What a comparison says of a test of a repository."""

    __test__ = False

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, kw_only=True)
class TestAnswer:
    """What a comparison says of one test for one target."""

    __test__ = False

    name: str
    """As pytest takes it at the repository's root."""
    target: str
    status: TestStatus
    reason: str
    cases: tuple[str, ...]
    """Ids of the changed cases."""


@dataclass(frozen=True, kw_only=True)
class TestsAnswer:
    """What a comparison says of the tests whose launches are its cases."""

    __test__ = False

    tests: tuple[TestAnswer, ...]
    collected: int
    """How many tests there are; a sample of them ran."""
    cases: int
    changed_cases: int
    uncollected: tuple[str, ...]
    """Files of tests that pytest could not collect."""

    def names(self, status: TestStatus) -> tuple[str, ...]:
        """Tests of that status for all targets; of changed ones, for any."""
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
    """The cases whose canonical edit is the same."""

    id: str
    """Digest of the canonical edit: another edit is another group, in any run."""
    title: str
    """A plain description built from facts."""
    severity: str
    """The gravest class of a member: a `ReportClass`."""
    origin_stage: str
    pass_name: str | None
    charged: tuple[Component, ...]
    representative: str
    """Case id of the smallest edit among those of the gravest class."""
    members: tuple[str, ...]
    similarity: float
    """Mean share of edit lines that members have in common with the representative, 0 to 1."""
    reasons: tuple[str, ...]
    """Why its representative has that class."""
    edit: tuple[str, ...]
    """The abstracted edit: lines that begin with `-` or `+`."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One comparison with all it found: the content of `run.json`."""

    schema: str
    irdiff_version: str
    normalizer_version: str
    created: str
    """UTC, ISO 8601."""
    command: tuple[str, ...]
    options: Options
    base: Revision
    head: Revision
    targets: tuple[Target, ...]
    environment: Mapping[str, str]
    """What was set in the compilers' environment, and what could not be set (address randomization)."""
    summary: Summary
    cases: tuple[Case, ...]
    launches: Mapping[str, Launch]
    groups: tuple[ChangeGroup, ...]
    reach: Reach | None
    """Of two revisions of one repository of kernels."""
    edited: Edited | None
    """Of two revisions of one repository."""
    edited_lines: EditedLines | None
    """Where head's compiler was built to count lines, too, and that was asked for."""
    cut_from: str
    """Of a shard, SHA-256 of the workloads and targets that it was cut from; empty for a whole run."""
    runtime: tuple[RuntimeEdit, ...]
    """What differs between `kernel[grid]` and the driver, which no case compares."""
    notes: tuple[str, ...]
    """Anything not compared, and why."""
    unexamined: tuple[str, ...] = ()
    """What the sides have, or may have, that no case looked at, a clause each: part of the first sentence."""
    tests: TestsAnswer | None = None
    """Where the cases are what the tests of a repository launch."""
    duration_s: float
