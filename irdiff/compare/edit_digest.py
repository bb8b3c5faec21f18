"""The digest of a case's concrete edit: what an acceptance is of.

A change group abstracts constants, types and positions, so that a reviewer reads each kind of change once. A
person who accepts a change accepts one edit, not its kind. So the digest covers, of both sides:

- the machine code, where it differs: every constant, type, order and position that executes is in it;
- where it does not, or was not made, the canonical text of every stage, changed or not: no constant, type,
order
  or position of an operation can differ without another digest. Locations, names and numbers of values may:
  they cannot reach the code;
- what the launch has otherwise, and what the compiler tells the launcher otherwise, with its values;
- how a side failed, where it did.

A text that cannot be read as its IR counts with its bytes: that can only make two equal edits differ.
Which toolchains made them is not in it; acceptances hold their digests beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

from irdiff import binaries, normalize
from irdiff.errors import NormalizeError
from irdiff.model import GROUPED_VERDICTS, Artifact, Case, Failure, Launch, Pair, StageStatus
from irdiff.parallel import LARGE_TEXT
from irdiff.store import Store, key_of

_BINARIES = {"cubin": "sass", "hsaco": "amdgcn"}
"""Binary artifact → the stage that its machine code is reported under."""
_NO_STAGE = "source"
"""What the frontend was given, where it is IR: `ttir` is made of it."""
_LAUNCH_FIELDS = ("signature", "constexprs", "attributes", "options", "grid")
_LAUNCHER_FINDING = "launch-differs:"
_PLACE = re.compile(r"0x[0-9a-fA-F]{6,}|(?:/[\w.+@=-]+)+/")
"""An address, or the folders of a path: another in every process."""


def of_case(case: Case, pair: Pair, store: Store) -> str | None:
    """None for a case that no change group takes."""
    if case.verdict not in GROUPED_VERDICTS:
        return None
    code = _machine_code(case, store)
    texts = [] if code else [_texts(side, store) for side in (case.artifacts.base, case.artifacts.head)]
    return key_of(
        "edit/2",
        case.verdict,
        texts,
        code,
        _launches(pair),
        _launcher(case),
        [_failure(failure) for failure in (case.failures.base, case.failures.head)],
    )


def _texts(artifacts: Mapping[str, Artifact], store: Store) -> dict[str, str]:
    return {
        stage: _canonical(stage, artifact.digest, store)
        for stage, artifact in artifacts.items()
        if stage not in _BINARIES and stage != _NO_STAGE
    }


def _canonical(stage: str, digest: str, store: Store) -> str:
    key = key_of("canonical", normalize.NORMALIZER_VERSION, stage, digest)
    known: str | None = store.get_record("canonical", key)
    if known is None:
        content = store.get(digest)
        if content is None:
            return f"bytes:{digest}"
        known = _read(stage, content) or f"bytes:{digest}"
        store.put_record("canonical", key, known)
    return known


def _read(stage: str, content: bytes) -> str | None:
    """Of what counts in an artifact; None where it is not what its stage says."""
    try:
        if stage in _BINARIES:
            return binaries.machine_code(stage, content).digest
        found = sha256()
        with LARGE_TEXT:
            for line in normalize.lines(stage, content.decode()):
                found.update(line.encode() + b"\n")
        return found.hexdigest()
    except (NormalizeError, UnicodeError):
        return None


def _machine_code(case: Case, store: Store) -> dict[str, list[str]]:
    """Of both sides. Not where it is the same: it may then have been compared by rule and never made."""
    sides = case.artifacts.base, case.artifacts.head
    return {
        binary: [_canonical(binary, side[binary].digest, store) for side in sides]
        for binary, stage in _BINARIES.items()
        if case.stages.get(stage) is StageStatus.CHANGED and all(binary in side for side in sides)
    }


def _launches(pair: Pair) -> dict[str, list[object]]:
    base, head = pair.base, pair.head
    if not isinstance(base, Launch) or not isinstance(head, Launch):
        return {}
    both = {name: [getattr(base, name), getattr(head, name)] for name in _LAUNCH_FIELDS}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def _launcher(case: Case) -> dict[str, list[object]]:
    """Entries of the compiler's metadata that the comparison found to differ for the launcher."""
    found = (text for text in case.findings if text.startswith(_LAUNCHER_FINDING))
    names = [name for text in found for name in text.removeprefix(_LAUNCHER_FINDING).split(",")]
    return {name: [case.metadata.base.get(name), case.metadata.head.get(name)] for name in names}


def _failure(failure: Failure | None) -> list[str] | None:
    if failure is None:
        return None
    return [failure.kind, failure.stage, failure.signal or "", _PLACE.sub("…", failure.message)]
