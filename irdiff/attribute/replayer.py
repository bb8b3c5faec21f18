"""One stage of one side run again on a text: its own or the other side's, with or without the passes' IR.

What a stage made is kept in the cache under all that it was made from. So a step that needs a replay which
another one has made finds it there: the determinism check finds what attribution ran on a side's own text.
"""

from __future__ import annotations

import math
import mmap
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from irdiff.attribute import pass_states
from irdiff.attribute.first_divergent_pass import word_change
from irdiff.attribute.pass_states import END, State
from irdiff.codegen.tool_compiler import ToolCompiler
from irdiff.compile.launch_requests import LaunchRequests
from irdiff.model import Failed, Launch, Target
from irdiff.parallel import LARGE_TEXT
from irdiff.store import disk_space
from irdiff.store.memo import Memo, MemoStep
from irdiff.worker import protocol
from irdiff.worker.protocol import ReplayWords
from irdiff.worker_client import diagnosis
from irdiff.worker_client.worker_requests import read_result

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side

CODEGEN_LIBRARY = "codegen library"
MAX_LOG_BYTES = 256 << 20
"""A longer log of passes is not read: the largest seen is 25 MB."""
MAX_REPLAY_S = 120.0
_LEAST_CPU_S = 10
_TIMES_LONGER = 20
"""Passes that print their IR take up to ten times as long as without."""
_MESSAGE_CHARACTERS = 300


class Dump(StrEnum):
    """Selects what a replay keeps besides its output."""

    NONE = "none"
    FINAL = "final"
    """The IR after the last MLIR pass."""
    ALL = "all"
    """The IR between MLIR passes, and after the last one."""
    NAMES = "names"
    """The pass that was running when the stage failed."""
    LLVM = "llvm"
    """The IR between the passes of LLVM's optimizer."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A request to run one stage on the compiler of one side."""

    side: Side
    launch: Launch
    target: Target
    stage: str
    input_stage: str
    input_digest: str
    metadata: Mapping[str, object]
    """Metadata of the side whose text it is. Later stages read what earlier ones noted."""
    dump: Dump = Dump.NONE
    randomized: bool = False
    """True for another address layout and hash seed than those of the compilations that are compared."""
    attempt: int = 0
    """Replays that differ in this alone are each run."""
    compile_s: float | None = None
    """The time of the stage in the compilation that is compared. With the text of another release a stage may
    never end, so it gets some times as much processor time, and not the whole of MAX_REPLAY_S.
    """


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The result of a replay. The IR between passes is in memory, not in the store."""

    output: str | None
    """Its digest in the store; None where the stage failed."""
    error: str = ""
    settings: Mapping[str, Sequence[str]]
    """Flags and options that LLVM and the assembler were called with, by function; under CODEGEN_LIBRARY the
    version of the library that generated the code, where it was one beside the compiler."""
    states: Sequence[State] = ()
    """Set with `Dump.ALL` or `Dump.LLVM`; empty if the log is longer than MAX_LOG_BYTES."""
    final: State | None = None
    """The IR after the last MLIR pass."""
    failed_in: str | None = None
    """Set with `Dump.NAMES`: the MLIR pass in which the stage failed."""
    transient: bool = False
    """True if another attempt may give another result: the time ran out on this machine, or its worker was
    ended.
    """


class KeptReplay(NamedTuple):
    """The part of a result that the cache keeps."""

    output: str | None
    error: str
    settings: Mapping[str, Sequence[str]]


STEP: MemoStep[KeptReplay] = MemoStep("replayed", __name__, KeptReplay)


class Replayer:
    """Thread-safe."""

    def __init__(self, compiler: LaunchRequests | ToolCompiler) -> None:
        self._tools = compiler if isinstance(compiler, ToolCompiler) else None
        self._compiler: LaunchRequests = compiler.inner if isinstance(compiler, ToolCompiler) else compiler
        self._store = self._compiler.store

    @property
    def reuse(self) -> bool:
        return self._compiler.reuse

    def run(self, replay: Replay) -> Replayed:
        """Takes it from the cache where no IR between passes is asked for."""
        if replay.side.substitute is not None:
            return self._by_tool(replay)
        memo = self._memo(replay)
        kept = memo.get() if memo and replay.dump is Dump.NONE else None
        if kept is not None and (kept.output is None or self._store.has(kept.output)):
            return Replayed(output=kept.output, error=kept.error, settings=kept.settings)
        replayed = self._by_worker(replay)
        if memo and not replayed.transient:
            memo.keep(KeptReplay(replayed.output, replayed.error, replayed.settings))
        return replayed

    def _memo(self, replay: Replay) -> Memo[KeptReplay] | None:
        made_of = self._compiler.inputs(replay.side, replay.launch, replay.target)
        if made_of is None or not self.reuse:
            return None
        given = [replay.stage, replay.input_stage, replay.input_digest, replay.metadata]
        return self._store.memo(STEP, [made_of, given, replay.randomized, replay.attempt])

    def _by_worker(self, replay: Replay) -> Replayed:
        content = self._store.get(replay.input_digest)
        if content is None:
            return _failed(f"the {replay.input_stage} artifact is gone from the store")
        words: ReplayWords = {
            "op": "replay",
            "stage": replay.stage,
            "input_stage": replay.input_stage,
            "metadata": replay.metadata,
            "dump": replay.dump,
            "shared": self.reuse and replay.attempt == 0 and replay.dump in (Dump.NONE, Dump.FINAL),
            "timeout_s": min(self._compiler.requests.config.limits.timeout_s, MAX_REPLAY_S),
        }
        if replay.compile_s is not None:
            words["cpu_s"] = math.ceil(_LEAST_CPU_S + _TIMES_LONGER * replay.compile_s)
        with self._store.scratch() as folder:
            path = folder / _input_name(replay.input_stage)
            path.write_bytes(content)
            words["input"] = str(path)
            ended = self._compiler.ask(
                words, replay.side, replay.launch, replay.target, folder, randomized=replay.randomized
            )
            is_late = ended.timed_out or ended.signal == signal.SIGXCPU
            with LARGE_TEXT:
                return self._read(folder, replay, is_late, ended.timed_out or ended.worker_died)

    def _read(self, folder: Path, replay: Replay, is_late: bool, transient: bool) -> Replayed:
        result = read_result(folder)
        if result is None or result["outcome"] != "compiled":
            return Replayed(
                output=None,
                error="no result in time"
                if is_late and result is None
                else _reason(folder / protocol.ERRORS, self._compiler.requests.config.temporary_folder),
                settings={},
                failed_in=_last_pass(folder) if replay.dump is Dump.NAMES else None,
                transient=transient,
            )
        after = folder / "passes.after"
        place = _place_of(folder, replay.input_stage)
        final = State.of(END, after.read_bytes().replace(*place)) if _is_readable(after) else None
        flags = result["assembler_flags"]
        assembler = {Path(flags[0]).name: flags[1:]} if flags else {}
        return Replayed(
            output=self._store.put((folder / replay.stage).read_bytes()),
            settings={**result["settings"], **assembler},
            states=_states(folder, replay.dump, final, place),
            final=final,
            transient=transient,
        )

    def _by_tool(self, replay: Replay) -> Replayed:
        assert self._tools is not None
        toolchain = replay.side.toolchain
        made = self._tools.replay(
            toolchain,
            replay.launch.id,
            replay.target,
            replay.stage,
            replay.input_digest,
            attempt=f"randomized {replay.attempt}" if replay.randomized else "",
        )
        if made is None:
            return _failed(f"{toolchain.version} does not make {replay.stage}")
        if isinstance(made, Failed):
            return replace(_failed(made.failure.message), transient=made.transient)
        artifact = made.artifacts.get(replay.stage)
        if artifact is None or not self._store.has(artifact.digest):
            return _failed(f"{replay.stage} is gone from the store")
        return Replayed(output=artifact.digest, settings={})


def _failed(error: str) -> Replayed:
    return Replayed(output=None, error=error, settings={})


def _last_pass(folder: Path) -> str | None:
    path = folder / protocol.ERRORS
    if not _is_readable(path):
        return None
    with path.open("rb") as log:
        return pass_states.last_begun(log)


def _input_name(stage: str) -> str:
    return f"input.{stage}"


def _place_of(folder: Path, stage: str) -> tuple[bytes, bytes]:
    """The whole name of the input, which locations in the IR have and which is another one each time; and the
    name that takes its place.
    """
    name = _input_name(stage)
    return str(folder / name).encode(), name.encode()


def _states(folder: Path, dump: Dump, final: State | None, place: tuple[bytes, bytes]) -> Sequence[State]:
    path = folder / "passes"
    if dump is Dump.LLVM or not path.exists():  # 3.2 knows no file for MLIR's passes
        path = folder / protocol.ERRORS
    if dump not in (Dump.ALL, Dump.LLVM) or not _is_readable(path) or path.stat().st_size == 0:
        return ()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
        if dump is Dump.ALL:
            return pass_states.read_mlir_log(log, final, place)
        return pass_states.read_llvm_log(log)


def _is_readable(path: Path) -> bool:
    return path.exists() and path.stat().st_size <= MAX_LOG_BYTES


def _reason(stderr: Path, temporary: Path) -> str:
    """The compiler's first diagnostic, or the last line that it printed."""
    said = diagnosis.of_file(stderr)
    disk_space.raise_if_named(said.excerpt, stderr.parent, temporary)
    last = said.excerpt.rpartition("\n")[2]
    return said.text or last[:_MESSAGE_CHARACTERS] or "it died without a word"


def settings_change(base: Replayed, head: Replayed) -> str:
    """`ptxas: (none) → --opt-level 1`: flags and options that only one side's call has."""
    ours, theirs = (
        {name: [word for row in rows for word in row.split()] for name, rows in side.settings.items()}
        for side in (base, head)
    )
    changes = {name: word_change(ours[name], theirs[name]) for name in ours if name in theirs}
    return ", ".join(f"{name}: {change}" for name, change in changes.items() if change)
