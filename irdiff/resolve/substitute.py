"""A side whose compiler starts at a stored text: a tool, and the origin of its texts.

The texts are those of a release (its stages produce them, or the store has them), or those that a run
recorded. The side gets a toolchain of its own, identified by the tool and by the texts' origin, so that all
code that compares toolchains works.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from irdiff import texts
from irdiff.model import Case, Launch, Revision, Run, Target, Toolchain
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.tools import Tool, ToolKind
from irdiff.store import key_of


@dataclass(frozen=True, kw_only=True)
class RecordedSide:
    run: Run
    side: str

    @property
    def revision(self) -> Revision:
        return self.run.base if self.side == "base" else self.run.head

    @cached_property
    def cases(self) -> Mapping[tuple[str, str], Case]:
        """Keyed by launch id and target."""
        cases = {}
        for case in self.run.cases:
            launch = self.launch(case)
            if launch is not None:
                cases[launch.id, case.target] = case
        return cases

    def launch(self, case: Case) -> Launch | None:
        key = case.launches.of(self.side)
        return self.run.launches.get(key) if key else None


@dataclass(frozen=True, kw_only=True)
class Substitute:
    tool: Tool
    origin: Toolchain | RecordedSide
    corpus: Corpus
    """The workloads that `origin` compiles."""
    assembler: Tool | None
    """Assembles the output of an LLVM, if `origin` is a run; a release has its own."""

    @property
    def texts_of(self) -> str:
        return self._above.spec

    @property
    def version(self) -> str:
        return self._above.version

    def compiles(self, target: Target) -> bool:
        """True if the tool generates code for a target."""
        return self.tool.kind is ToolKind.LLVM or target.backend in self.tool.backends

    @property
    def note(self) -> str:
        return f"{self.tool.version} compiles the {texts.title(self.tool.starts_at)} of {self.texts_of}"

    def toolchain(self) -> Toolchain:
        """Returns a synthetic toolchain whose digest identifies the tool and its input."""
        above = self._above
        own = {str(self.tool.path): self.tool.digest} if self.tool.assembler else above.programs
        return replace(
            above,
            spec=self.tool.spec,
            version=self.tool.version,
            digest=key_of("substitute/1", self.tool.digest, above.digest),
            path=str(self.tool.path),
            programs=own,
            notes=tuple(dict.fromkeys((*above.notes, *self.tool.notes))),
        )

    @property
    def _above(self) -> Toolchain:
        """Returns the release that produces the texts, or a synthetic toolchain for the run that recorded
        them.
        """
        if isinstance(self.origin, Toolchain):
            return self.origin
        revision = self.origin.revision
        assembler = {str(self.assembler.path): self.assembler.digest} if self.assembler else {}
        return Toolchain(
            spec=revision.spec,
            version=revision.version,
            digest=key_of("recorded/1", revision.digest, assembler),
            path="",
            python="",
            root="",
            runtime={},
            variables={},
            programs=assembler,
            notes=(),
        )


def recorded_corpus(recorded: RecordedSide) -> Corpus:
    """Returns the workloads that a run launched, without their files."""
    names = sorted({case.workload for case in recorded.run.cases})
    return Corpus(root=Path("/nonexistent"), workloads=tuple(names), digest=recorded.revision.corpus)
