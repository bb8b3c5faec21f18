"""What irdiff and a worker send each other: requests as lines of JSON, replies, and results in files.

The one module that both sides import: standard library alone, Python 3.9 on. A request names a `folder`. The
child that serves it leaves its result there, as `RESULT`, written last, so that its presence means that it is
whole; beside it artifacts under the names of their stages, and the other files below.
"""

from __future__ import annotations

from typing import Any, Literal, Mapping, TypedDict, Union

RESULT = "result.json"
STAGES = "stages"
"""The names of the stages that were begun, one behind the other: all that a child leaves that crashed."""
ERRORS = "stderr"
"""The output of the child, the compiler and its assembler."""
OPENED = "opened"
"""What was opened while stages ran."""


class SelectionWords(TypedDict):
    """Which launches of one workload count."""

    tiers: list[str]
    """None means all."""
    labels: list[str]
    """Globs of labels, or of launches below them; none means all."""
    frontend: bool
    """Whether the frontend is run while launches are captured, so that they have an input digest."""
    configs: int | None
    """The most configs of an autotuner that count, from the first; None: all."""


class WorkloadPlace(TypedDict):
    """Where a workload lies."""

    root: str
    """Of the corpus."""
    workloads: str
    """Their folder in it."""
    imports: list[str]
    """More folders on the module search path."""


class _Workload(WorkloadPlace):
    target: dict[str, Any]
    """As in its TOML."""
    select: SelectionWords


class _Bounds(TypedDict, total=False):
    timeout_s: float
    cpu_s: int
    """Processor time that it may take."""


class CatalogRequest(_Workload):
    """Every launch of one workload for one target, described."""

    op: Literal["catalog"]
    workload: str
    note_calls: bool
    """Whether the functions that run are noted."""
    below: str | None
    """The folder whose opened files are listed."""


class LaunchRequest(_Workload):
    """About one launch."""

    launch: str


class Assembled(TypedDict, total=False):
    """What an assembler has made of the same input before may be taken."""

    assembled: str
    """The folder of earlier results of assemblers."""
    programs: dict[str, str]
    """Digests of assemblers, by their paths."""


class CompileWords(_Bounds, total=False):
    """Has a launch compiled."""

    op: Literal["compile"]
    digest: str | None
    """The input digest that the launch must have again."""
    shared: bool
    """Whether a child may serve it that has served others."""
    profile: str
    """The file for the lines of the compiler that it ran, where the compiler was built to count them."""


class ReplayWords(_Bounds, total=False):
    """Has one stage run on a text."""

    op: Literal["replay"]
    stage: str
    input_stage: str
    input: str
    """A file that holds the text of `input_stage`."""
    metadata: Mapping[str, Any]
    """Triton's, of the stages before."""
    dump: str
    """`none`; `final`: the IR that leaves the last pass, as the file `passes.after`; `all`: with it `passes`,
    the IR before each pass under MLIR's own headings; `names`: MLIR's dumps in `ERRORS`; `llvm`: LLVM's
    there.
    """
    shared: bool


class OnePassWords(_Bounds, total=False):
    """Has one pass run on each of some texts, which leaves `output.N` or `error.N`."""

    op: Literal["one_pass"]
    stage: str
    argument: str
    """The pass, as MLIR names it."""
    options: str | None
    """They tell namesakes apart."""
    metadata: Mapping[str, Any]
    inputs: list[str]
    """Files."""


class CompileRequest(CompileWords, Assembled, LaunchRequest):
    pass


class ReplayRequest(ReplayWords, Assembled, LaunchRequest):
    pass


class OnePassRequest(OnePassWords, Assembled, LaunchRequest):
    pass


LaunchWords = Union[CompileWords, ReplayWords, OnePassWords]
Request = Union[CatalogRequest, CompileRequest, ReplayRequest, OnePassRequest]


class Reply(TypedDict):
    """How a request ended: a line up the pipe."""

    id: int
    signal: int
    """That ended the child; 0 where it came to its end."""
    timed_out: bool


class FailedLabel(TypedDict):
    """A label of a workload whose launches could not be captured."""

    id: str
    message: str
    transient: bool
    expected: bool


class Result(TypedDict, total=False):
    """`RESULT`. All but the first three are there where they apply."""

    outcome: Literal["captured", "compiled", "unsupported", "error", "memory"]
    stage: str
    """The one that was under way."""
    artifacts: list[str]
    """Stages whose artifacts are in the folder."""
    message: str
    unsupported: bool
    transient: bool
    """Whether another time may cure it."""

    # of CatalogRequest
    launches: list[dict[str, Any]]
    """As `irdiff.model.Launch`, field by field, with the text of what is launched as `launched`."""
    failures: list[FailedLabel]
    left_out: dict[str, int]
    called: dict[str, Any]
    read: list[str]
    missing: list[str]
    caveats: list[str]
    uncompared: list[str]

    # of CompileWords and ReplayWords
    metadata: dict[str, Any]
    launcher_args: dict[str, Any] | None
    """What the launcher is given in addition to the arguments."""
    stage_times_s: dict[str, float]
    stage_cpu_s: dict[str, float]
    assembler_flags: list[str] | None
    """Of the last assembler that ran, from its own path on."""
    assembler_log: str
    notes: list[str]
    from_outside: list[str]
    """Modules from outside of Triton that its stages imported: they are in no digest."""
    settings: dict[str, Any]
    """What a replay gave LLVM."""

    # of OnePassWords
    pipeline: str | None
    """As triton-opt takes it; None where the stage has no such pass."""
