"""One stage of one side run again on a text: its own or the other side's, with or without the passes' IR."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from irdiff.compare import llvm_passes, passes
from irdiff.compare.passes import State
from irdiff.config import Config
from irdiff.model import Target
from irdiff.sides import Side
from irdiff.store import Store
from irdiff.workers import Workers

MAX_LOG_BYTES = 256 << 20
"""A longer log of passes is not read: the largest seen is 25 MB."""
MAX_REPLAY_S = 120.0
_MESSAGE_CHARACTERS = 300


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
    dump: str
    """The IR between passes: `all`, `final` (after the last one), or none."""
    llvm: bool


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """How it went. Texts are at hand, not in the store."""

    output: bytes | None
    error: str
    states: Sequence[State]
    """The IR between MLIR passes; empty where it was not asked for, or is longer than MAX_LOG_BYTES."""
    final: str | None
    """The IR after the last MLIR pass."""
    llvm_states: Sequence[State]
    """The same of LLVM's optimizer."""
    settings: Mapping[str, Sequence[str]]
    """Flags and options that LLVM and the assembler were called with, by function."""


class Replayer:
    """Thread-safe."""

    def __init__(self, config: Config, store: Store, workers: Workers) -> None:
        self._config = config
        self._store = store
        self._workers = workers
        self._reading = threading.Lock()
        self._timeout_s = min(config.limits.timeout_s, MAX_REPLAY_S)

    def run(self, replay: Replay) -> Replayed:
        content = self._store.get(replay.input_digest)
        if content is None:
            return _failed(f"the {replay.input_stage} artifact is gone from the store")
        beside = replay.side.corpus.beside(replay.launch_id, replay.target)
        with self._store.scratch() as folder:
            path = folder / f"input.{replay.input_stage}"
            path.write_bytes(content)
            ended = self._workers.get(replay.side.toolchain, beside).request(
                {
                    "op": "replay",
                    "launch": replay.launch_id,
                    "root": str(replay.side.corpus.root),
                    "target": asdict(replay.target),
                    "stage": replay.stage,
                    "input_stage": replay.input_stage,
                    "input": str(path),
                    "metadata": replay.metadata,
                    "dump": replay.dump,
                    "llvm": replay.llvm,
                    "folder": str(folder),
                    "timeout_s": self._timeout_s,
                    "memory_bytes": self._config.limits.memory_bytes,
                }
            )
            with self._reading:  # a log has tens of megabytes: one in memory at a time
                return _read(folder, replay, timed_out=ended.timed_out)


def _read(folder: Path, replay: Replay, *, timed_out: bool) -> Replayed:
    stderr = _text(folder / "stderr")
    try:
        result = json.loads((folder / "result.json").read_text())
    except FileNotFoundError:
        return _failed("no result in time" if timed_out else _reason(stderr))
    if result["outcome"] != "compiled":
        return _failed(_reason(stderr) or result["message"])
    path = folder / "passes"
    after = folder / "passes.after"
    final = _text(after) if after.exists() else None
    log = ""
    if replay.dump == "all":
        log = _text(path) if path.exists() else stderr  # 3.2 knows no file for it
    return Replayed(
        output=(folder / replay.stage).read_bytes(),
        error="",
        states=passes.read_log(log, final) if replay.dump == "all" else (),
        final=final,
        llvm_states=llvm_passes.read_log(stderr) if replay.llvm else (),
        settings={**result["settings"], **_assembler(result["assembler_flags"])},
    )


def _assembler(flags: Sequence[str] | None) -> dict[str, Sequence[str]]:
    return {flags[0]: flags[1:]} if flags else {}


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_LOG_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _reason(stderr: str) -> str:
    """The line that says why: MLIR's parser and the passes print `error:`."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if "error:" in line or "LLVM ERROR" in line]
    line = (telling or lines[-1:] or ["it died without a word"])[0]
    return line.rpartition("error: ")[2][:_MESSAGE_CHARACTERS]


def _failed(error: str) -> Replayed:
    return Replayed(output=None, error=error, states=(), final=None, llvm_states=(), settings={})


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
