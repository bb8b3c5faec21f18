"""The real artifacts of `tests/data/artifacts`, packed by its `generate.py`."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).parents[2] / "data" / "artifacts" / "artifacts.tar.xz"
TEXT_STAGES = ("ttir", "ttgir", "glir", "source", "llir", "ptx", "amdgcn", "sass")


@dataclass(frozen=True, kw_only=True)
class RealArtifact:
    release: str
    kernel: str
    target: str
    stage: str
    content: bytes

    @property
    def name(self) -> str:
        return f"{self.release}/{self.kernel}/{self.target}/{self.stage}"

    @property
    def text(self) -> str:
        return self.content.decode()


@cache
def all_artifacts() -> tuple[RealArtifact, ...]:
    found = []
    with tarfile.open(ARCHIVE, "r:xz") as archive:
        for member in archive:
            release, kernel, target, stage = member.name.split("/")
            file = archive.extractfile(member)
            assert file is not None
            found.append(
                RealArtifact(release=release, kernel=kernel, target=target, stage=stage, content=file.read())
            )
    return tuple(found)


def of_stage(stage: str, **wanted: str) -> list[RealArtifact]:
    """Those of one stage, filtered by `release`, `kernel` or `target`."""
    return [
        artifact
        for artifact in all_artifacts()
        if artifact.stage == stage and all(getattr(artifact, key) == value for key, value in wanted.items())
    ]
