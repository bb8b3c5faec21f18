"""Runs stages of a tool's side again with the tool, or takes them from the store; workers run the others."""

from __future__ import annotations

from irdiff.attribute.replayer import Replay, Replayed, WorkerReplayer
from irdiff.codegen.tool_compiler import ToolCompiler
from irdiff.model import Failed
from irdiff.store import Store


class ToolReplayer:
    """Thread-safe."""

    def __init__(self, inner: WorkerReplayer, compiler: ToolCompiler, store: Store) -> None:
        self._inner = inner
        self._compiler = compiler
        self._store = store

    def run(self, replay: Replay) -> Replayed:
        if replay.side.substitute is None:
            return self._inner.run(replay)
        made = self._compiler.replay(
            replay.side.toolchain,
            replay.launch_id,
            replay.target,
            replay.stage,
            replay.input_digest,
            randomized=replay.randomized,
        )
        if made is None:
            return _without(f"{replay.side.toolchain.version} does not make {replay.stage}")
        if isinstance(made, Failed):
            return _without(made.failure.message)
        artifact = made.artifacts.get(replay.stage)
        output = self._store.get(artifact.digest) if artifact else None
        if output is None:
            return _without(f"{replay.stage} is gone from the store")
        return Replayed(output=output, error="", states=(), final=None, settings={}, failed_in=None)


def _without(error: str) -> Replayed:
    return Replayed(output=None, error=error, states=(), final=None, settings={}, failed_in=None)
