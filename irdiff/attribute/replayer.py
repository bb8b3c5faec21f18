"""One stage of one side run again on a text: its own or the other side's, with or without the passes' IR."""

from __future__ import annotations

import json
import math
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from irdiff.attribute import llvm_passes, passes
from irdiff.attribute.passes import END, State
from irdiff.capture.catalogs import Wanted
from irdiff.config import Config
from irdiff.model import Target
from irdiff.parallel import LARGE_TEXT
from irdiff.resolve.sides import Side
from irdiff.store import Store
from irdiff.worker_client.workers import Workers

MAX_LOG_BYTES = 256 << 20
"""A longer log of passes is not read: the largest seen is 25 MB."""
MAX_REPLAY_S = 120.0
_LEAST_CPU_S = 10
_TIMES_LONGER = 20
"""Passes that print their IR take up to ten times as long as without."""
_MESSAGE_CHARACTERS = 300


class Dump(StrEnum):
    """What is kept besides the output."""

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
    """What to run, on which side's compiler."""

    side: Side
    launch_id: str
    target: Target
    stage: str
    input_stage: str
    input_digest: str
    metadata: Mapping[str, object]
    """Of the side whose text it is: later stages read what earlier ones noted."""
    dump: Dump
    randomized: bool
    """Whether it runs with other addresses and another hash seed than the compilations that are compared."""
    compile_s: float | None = None
    """How long the stage took in the compilation that is compared. With the text of another release it may
    never end: so it gets some times as much processor time, and not the whole of MAX_REPLAY_S."""


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """How it went. The IR between passes is at hand, not in the store."""

    output: bytes | None
    error: str
    states: Sequence[State]
    """Of `Dump.ALL` or `Dump.LLVM`; empty where the log is longer than MAX_LOG_BYTES."""
    final: State | None
    """The IR after the last MLIR pass."""
    settings: Mapping[str, Sequence[str]]
    """Flags and options that LLVM and the assembler were called with, by function."""
    failed_in: str | None
    """Of `Dump.NAMES`: the MLIR pass in which the stage failed."""
    may_be_cured: bool = False
    """Whether another attempt may say more: the time ran out on this machine, or its worker was ended."""


class WorkerReplayer:
    """Thread-safe."""

    def __init__(
        self, config: Config, store: Store, workers: Workers, wanted: Wanted, *, reuse: bool
    ) -> None:
        self._config = config
        self._store = store
        self._workers = workers
        self._wanted = wanted
        """As the launches were captured: a host that has them is asked again."""
        self._reuse = reuse
        """Whether what an assembler made of the same input before is taken."""
        self._timeout_s = min(config.limits.timeout_s, MAX_REPLAY_S)
        self._cores = threading.BoundedSemaphore(config.jobs + 1)
        """One more than there are: while one is read, the next ones run."""

    def run(self, replay: Replay) -> Replayed:
        content = self._store.get(replay.input_digest)
        if content is None:
            return _failed(f"the {replay.input_stage} artifact is gone from the store")
        beside = replay.side.corpus.beside(replay.launch_id, replay.target)
        workload = replay.launch_id.partition(":")[0]
        with self._cores, self._store.scratch() as folder:
            path = folder / f"input.{replay.input_stage}"
            path.write_bytes(content)
            ended = self._workers.get(replay.side.toolchain, beside, randomized=replay.randomized).request(
                {
                    "op": "replay",
                    "launch": replay.launch_id,
                    **replay.side.corpus.place,
                    "target": asdict(replay.target),
                    "select": asdict(self._wanted.selection(workload, replay.target)),
                    "stage": replay.stage,
                    "input_stage": replay.input_stage,
                    "input": str(path),
                    "metadata": replay.metadata,
                    "dump": replay.dump,
                    "folder": str(folder),
                    "timeout_s": self._timeout_s,
                    "memory_bytes": self._config.limits.memory_bytes,
                    **_cpu_limit(replay),
                    **self._assembled(replay),
                }
            )
            with LARGE_TEXT:
                found = _read(folder, replay, is_late=ended.timed_out or ended.signal == signal.SIGXCPU)
            return replace(found, may_be_cured=ended.timed_out or ended.worker_died)

    def _assembled(self, replay: Replay) -> dict[str, object]:
        if replay.randomized or not self._reuse:
            return {}
        programs = dict(replay.side.toolchain.programs)
        return {"assembled": str(self._store.assembled), "programs": programs}


def _cpu_limit(replay: Replay) -> dict[str, int]:
    if replay.compile_s is None:
        return {}
    return {"cpu_s": math.ceil(_LEAST_CPU_S + _TIMES_LONGER * replay.compile_s)}


def _read(folder: Path, replay: Replay, *, is_late: bool) -> Replayed:
    try:
        result = json.loads((folder / "result.json").read_text())
    except FileNotFoundError:
        return _failed("no result in time" if is_late else _reason(folder), _last_pass(folder, replay))
    if result["outcome"] != "compiled":
        return _failed(_reason(folder) or result["message"], _last_pass(folder, replay))
    after = folder / "passes.after"
    final = State.of(END, "", None, after.read_bytes()) if _is_readable(after) else None
    return Replayed(
        output=(folder / replay.stage).read_bytes(),
        error="",
        states=_states(folder, replay.dump, final),
        final=final,
        settings={**result["settings"], **_assembler(result["assembler_flags"])},
        failed_in=None,
    )


def _last_pass(folder: Path, replay: Replay) -> str | None:
    path = folder / "stderr"
    if replay.dump is not Dump.NAMES or not _is_readable(path):
        return None
    with path.open("rb") as log:
        return passes.last_begun(log)


def _states(folder: Path, dump: Dump, final: State | None) -> Sequence[State]:
    path = folder / "passes"
    if dump is Dump.LLVM or not path.exists():  # 3.2 knows no file for MLIR's passes
        path = folder / "stderr"
    if dump in (Dump.NONE, Dump.FINAL, Dump.NAMES) or not _is_readable(path):
        return ()
    with path.open("rb") as log:
        return llvm_passes.read_log(log) if dump is Dump.LLVM else passes.read_log(log, final)


def _is_readable(path: Path) -> bool:
    return path.exists() and path.stat().st_size <= MAX_LOG_BYTES


def _assembler(flags: Sequence[str] | None) -> dict[str, Sequence[str]]:
    return {Path(flags[0]).name: flags[1:]} if flags else {}


def _reason(folder: Path) -> str:
    """The line of stderr that says why: MLIR's parser and the passes print `error:`."""
    found = "it died without a word"
    path = folder / "stderr"
    if path.exists():
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in filter(None, map(str.strip, lines)):
                found = line
                if "error:" in line or "LLVM ERROR" in line:
                    break
    return found.rpartition("error: ")[2][:_MESSAGE_CHARACTERS]


def _failed(error: str, failed_in: str | None = None) -> Replayed:
    return Replayed(output=None, error=error, states=(), final=None, settings={}, failed_in=failed_in)


def settings_change(base: Replayed, head: Replayed) -> str:
    """`ptxas: (none) → --opt-level 1`: flags and options that only one side's call has."""
    notes = []
    for name in [name for name in base.settings if name in head.settings]:
        ours, theirs = ([w for row in side.settings[name] for w in row.split()] for side in (base, head))
        gone = " ".join(word for word in ours if word not in theirs)
        new = " ".join(word for word in theirs if word not in ours)
        if gone or new:
            notes.append(f"{name}: {gone or '(none)'} → {new or '(none)'}")
    return ", ".join(notes)
