from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from irdiff.cli import run_argument
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Sides
from irdiff.resolve import sides as plain
from irdiff.resolve import tools
from irdiff.resolve.sides import Side, SideOptions
from irdiff.resolve.substitute import RecordedSide, Substitute, recorded_corpus
from irdiff.resolve.tools import Tool
from irdiff.run import run_folder
from irdiff.store import Store

_HINT = "--from triton==3.9.0, or --from RUN for the texts that a run has (RUN:base for those of its base)"


@dataclass(frozen=True, kw_only=True)
class ToolSides:
    origin: str | None
    """A release, or a run."""
    assembler: str | None
    """The path of the assembler for the output of `llvm:PATH`, if the texts are a run's."""
    wanted: SideOptions


def is_tool(*specs: str | None) -> bool:
    return any(spec is not None and tools.is_tool(spec) for spec in specs)


def resolve(base: str, head: str, tool_options: ToolSides, config: Config) -> Sides[Side]:
    """At least one side is a tool. Raises UsageError, ToolchainError, RunFolderError."""
    ours, theirs = of_list((base, head), tool_options, config)
    return Sides(base=ours, head=theirs)


def of_list(specs: tuple[str, ...], tool_options: ToolSides, config: Config) -> list[Side]:
    others = [spec for spec in specs if not tools.is_tool(spec)]
    origin = tool_options.origin
    if origin is None and len(set(others)) == 1:
        origin = others[0]
    if origin is None:
        raise UsageError("two tools need --from: the release or run whose texts they compile", hint=_HINT)
    if others and origin not in others:
        raise UsageError(
            f"--from {origin} with {others[0]} as a side: a tool is compared with what made its texts",
            hint=f"irdiff compare {others[0]} TOOL, or two tools and --from {origin}",
        )
    texts, below = _texts(origin, tool_options, config)
    assembler = tools.assembler_at(tool_options.assembler) if tool_options.assembler else None
    substituted = {
        spec: _side(tools.resolve(spec), texts, below, assembler) for spec in set(specs) - set(others)
    }
    plain_sides = {spec: below for spec in others if below is not None}
    return [{**substituted, **plain_sides}[spec] for spec in specs]


def _texts(origin: str, tool_options: ToolSides, config: Config) -> tuple[RecordedSide | None, Side | None]:
    """Returns the recorded run, or else the side that produces the texts."""
    if not plain.is_revision(origin):
        return None, plain.resolve_sides(origin, origin, tool_options.wanted, config).base
    name, _, which = origin.rpartition(":")
    call, side = (name, which) if which in ("base", "head") and name else (origin, "head")
    with run_argument.opened(call, config) as opened:
        recorded = RecordedSide(run=opened.run, side=side)
        _take(recorded, opened.folder, Store(config.store))
    return recorded, None


def _take(recorded: RecordedSide, folder: Path, store: Store) -> None:
    """Copies artifacts that the store lacks."""
    for case in recorded.run.cases:
        for artifact in case.artifacts.of(recorded.side).values():
            if not store.has(artifact.digest):
                content = run_folder.artifact(folder, artifact.digest)
                if content is not None:
                    store.put(content)


def _side(tool: Tool, recorded: RecordedSide | None, below: Side | None, assembler: Tool | None) -> Side:
    if below is not None:
        substitute = Substitute(tool=tool, origin=below.toolchain, corpus=below.corpus, assembler=None)
    else:
        assert recorded is not None
        corpus = recorded_corpus(recorded)
        substitute = Substitute(tool=tool, origin=recorded, corpus=corpus, assembler=assembler)
    return Side(
        toolchain=substitute.toolchain(),
        corpus=substitute.corpus,
        note=substitute.note,
        warnings=(*(below.warnings if below else ()), *tool.notes),
        substitute=substitute,
    )
