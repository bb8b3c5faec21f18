"""The digest of a case's concrete edit, which is what a person accepts.

A change group abstracts constants, types and positions, so that a reviewer reads each kind of change once. A
person who accepts a change accepts one edit, not its kind. So the digest covers, of both sides:

- the machine code, where it differs: every constant, type, order and position that executes is in it;
- where it does not, or was not made, the canonical text of every stage, changed or not: no constant, type,
  order or position of an operation can differ without another digest. Locations, names and numbers of values
  may: they cannot reach the code;
- what differs in the launch, and in what the launcher receives, with its values;
- how a side failed, where it did.

A text that cannot be read as its IR counts with its bytes: that can only make two equal edits differ.
It does not cover which toolchains made them; acceptances hold the toolchains' digests next to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from irdiff.backends.stages import BINARIES, reported
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError
from irdiff.compare.cases import CodeComparison, Made
from irdiff.errors import NormalizeError
from irdiff.findings import FindingKind
from irdiff.model import GROUPED_VERDICTS, Artifact, Launch, Pair, StageStatus
from irdiff.stages import Stage
from irdiff.store import key_of

_NO_STAGE = Stage.SOURCE
"""The stage that the frontend is given where it is given IR; `ttir` is made of it."""
_LAUNCH_FIELDS = ("signature", "constexprs", "attributes", "options", "grid")
_PLACE = re.compile(r"0x[0-9a-fA-F]{6,}|(?:/[\w.+@=-]+)+/")
"""An address, or the folders of a path, which differ in every process."""


def of_case(
    comparison: CodeComparison, outputs: Made, pair: Pair, comparator: ArtifactComparator
) -> str | None:
    """None for a case that no change group takes."""
    if comparison.verdict not in GROUPED_VERDICTS:
        return None
    # The machine code of both sides where it differs; where it is the same it may never have been made.
    code = {
        binary: [_digest(comparator.code_digest, binary, side[binary].digest) for side in outputs.artifacts]
        for binary in BINARIES
        if comparison.stages.get(reported(binary)) is StageStatus.CHANGED
        and all(binary in side for side in outputs.artifacts)
    }
    texts = [] if code else [_texts(side, comparator) for side in outputs.artifacts]
    launcher = {
        name: [side.get(name) for side in outputs.metadata]
        for finding in comparison.findings
        if finding.kind is FindingKind.LAUNCH_DIFFERS
        for name in finding.details
    }
    failures = [
        failure and [failure.kind, failure.stage, failure.signal or "", _PLACE.sub("…", failure.message)]
        for failure in comparison.failures
    ]
    return key_of("edit/2", comparison.verdict, texts, code, _launches(pair), launcher, failures)


def _texts(artifacts: Mapping[str, Artifact], comparator: ArtifactComparator) -> dict[str, str]:
    return {
        stage: _digest(comparator.text_digest, stage, artifact.digest)
        for stage, artifact in artifacts.items()
        if stage not in BINARIES and stage != _NO_STAGE
    }


def _digest(of_kind: Callable[[str, str], str], stage: str, digest: str) -> str:
    """The digest of what counts in an artifact, or of its bytes where it is no text of its stage."""
    try:
        return of_kind(stage, digest)
    except (NormalizeError, DamagedArtifactError):
        return f"bytes:{digest}"


def _launches(pair: Pair) -> dict[str, list[object]]:
    base, head = pair.base, pair.head
    if not isinstance(base, Launch) or not isinstance(head, Launch):
        return {}
    both = {name: [getattr(base, name), getattr(head, name)] for name in _LAUNCH_FIELDS}
    both["launched"] = [base.launched.digest, head.launched.digest]
    return {name: values for name, values in both.items() if values[0] != values[1]}
