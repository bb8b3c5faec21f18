"""The messages between irdiff and a worker: requests as lines of JSON, replies, and results in files.

Both sides import this module, so it uses the standard library alone, from Python 3.9 on. A request's child
leaves its result in the request's `folder` as `RESULT`, which is written last, beside artifacts under the
names of their stages.
"""

from __future__ import annotations

from typing import Any, Literal, Mapping, TypedDict, Union

RESULT = "result.json"
STAGES = "stages"
"""Names of the stages that were begun, in order. A child that crashed leaves nothing else."""
ERRORS = "stderr"
"""The output of the child, the compiler and its assembler."""
OPENED = "opened"
"""Files that were opened while stages ran."""


class SelectionWords(TypedDict):
    tiers: list[str]
    """None means all."""
    labels: list[str]
    """Globs of labels, or of launches below them; none means all."""
    frontend: bool
    """True if the frontend runs during capture, so that launches have an input digest."""
    configs: int | None
    """The most configs of an autotuner that count, from the first; None means all."""


class WorkloadPlace(TypedDict):
    root: str
    workloads: str
    imports: list[str]
    """More folders on the module search path."""


class _Workload(WorkloadPlace):
    target: dict[str, Any]
    """As in its TOML."""
    select: SelectionWords


class _Bounds(TypedDict, total=False):
    timeout_s: float
    cpu_s: int
    """The most processor time that the request may take."""


class CatalogRequest(_Workload):
    op: Literal["catalog"]
    workload: str
    note_calls: bool
    """True if the functions that run are noted."""
    below: str | None
    """The folder whose opened files are listed."""
    changed: str
    """The folder in which the names of the shared files that captures changed are kept."""


class LaunchRequest(_Workload):
    launch: str


class Assembled(TypedDict, total=False):
    """Lets the child reuse earlier results of assemblers."""

    assembled: str
    """The folder of earlier results of assemblers."""
    programs: dict[str, str]
    """Digests of assemblers, by their paths."""


class CompileWords(_Bounds, total=False):
    """Compiles a launch."""

    op: Literal["compile"]
    digest: str | None
    """The input digest that the launch must have again."""
    shared: bool
    """True if a child may serve it that has served other requests."""
    profile: str
    """The file for the lines of the compiler that ran, if the compiler was built to count them."""


class ReplayWords(_Bounds, total=False):
    """Runs one stage on a text."""

    op: Literal["replay"]
    stage: str
    input_stage: str
    input: str
    """A file that holds the text of `input_stage`."""
    metadata: Mapping[str, Any]
    """Triton's metadata of the stages before."""
    dump: str
    """`none`; `final`: the IR that leaves the last pass, as the file `passes.after`; `all`: with it `passes`,
    the IR before each pass under MLIR's own headings; `names`: MLIR's dumps in `ERRORS`; `llvm`: LLVM's
    there.
    """
    shared: bool


class OnePassWords(_Bounds, total=False):
    """Runs one pass on each of some texts; leaves `output.N` or `error.N`."""

    op: Literal["one_pass"]
    stage: str
    argument: str
    """The pass, as MLIR names it."""
    options: str | None
    """They tell passes of the same name apart."""
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
    """How a request ended, as a line of the pipe."""

    id: int
    signal: int
    """0 if no signal ended the child."""
    timed_out: bool


class FailedLabel(TypedDict):
    id: str
    message: str
    transient: bool
    expected: bool


class Result(TypedDict, total=False):
    """The content of `RESULT`. All fields but the first three are optional."""

    outcome: Literal["captured", "compiled", "unsupported", "error", "memory"]
    stage: str
    """The stage that was running."""
    artifacts: list[str]
    """Stages whose artifacts are in the folder."""
    message: str
    unsupported: bool
    transient: bool
    """True if a retry may succeed."""

    # of CatalogRequest
    launches: list[dict[str, Any]]
    """As `irdiff.model.Launch`, field by field, with the launch text as `launched`."""
    failures: list[FailedLabel]
    left_out: dict[str, int]
    called: dict[str, Any]
    read: list[str]
    missing: list[str]
    caveats: list[str]
    uncompared: list[str]
    absent_variables: list[tuple[str, int, str]]

    # of CompileWords and ReplayWords
    metadata: dict[str, Any]
    launcher_args: dict[str, Any] | None
    stage_times_s: dict[str, float]
    stage_cpu_s: dict[str, float]
    assembler_flags: list[str] | None
    """The command of the last assembler that ran, from its own path on."""
    assembler_log: str
    notes: list[str]
    from_outside: list[str]
    """Modules from outside of Triton that its stages imported: they are in no digest."""
    settings: dict[str, Any]
    """The flags and options with which a replay called LLVM."""

    # of OnePassWords
    pipeline: str | None
    """In triton-opt's form; None if the stage has no such pass."""
