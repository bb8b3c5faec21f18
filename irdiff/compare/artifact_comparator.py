"""Compares two artifacts of a stage: they are the same where their bytes or canonical forms are.

Whoever asks whether two artifacts are the same asks here: the verdict, the recheck, the acceptance of an
edit, attribution. What a question needs of an artifact is made once while there is room.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from irdiff import binaries, normalize
from irdiff.compare import rescheduled
from irdiff.compare.verdicts import TextComparison
from irdiff.errors import NormalizeError
from irdiff.findings import Finding, FindingKind
from irdiff.normalize import CanonicalText, Reprint, llvm_process
from irdiff.parallel import LARGE_TEXT
from irdiff.stages import MACHINE_STAGES, Stage
from irdiff.store import Store, digest_of_folders

T = TypeVar("T")

_KEPT_CHARACTERS = 16 << 20
"""The most characters of canonical texts that are kept. The texts of one case have about a million."""
_LARGE = 4 << 20
_KEPT_ANSWERS = 100_000


class DamagedArtifactError(Exception):
    """An artifact that a record names cannot be read back; the case is compiled again."""


class _NoTextError(NormalizeError):
    """The artifact is binary."""


@functools.cache
def made_by() -> str:
    """The digest of the modules that read and compare artifacts, part of every key of what they found: an
    edited rule whose version nobody raised judges anew, too.
    """
    return digest_of_folders("", "normalize", "binaries", "compare")


class ArtifactComparator:
    """Thread-safe."""

    def __init__(self, store: Store, reprint: Reprint) -> None:
        self.store = store
        self._reprint = reprint
        self._texts: OrderedDict[tuple[str, str], CanonicalText] = OrderedDict()
        self._kept_characters = 0
        self._answers: dict[tuple[object, ...], Any] = {}
        self._lock = threading.Lock()

    def content(self, digest: str) -> bytes:
        """Raises DamagedArtifactError."""
        content = self.store.get(digest)
        if content is None:
            raise DamagedArtifactError(digest)
        return content

    def text(self, stage: str, digest: str) -> CanonicalText:
        """Raises NormalizeError where the artifact is no text of its stage, and DamagedArtifactError."""
        with self._lock:
            known = self._texts.get((stage, digest))
            if known is not None:
                self._texts.move_to_end((stage, digest))
                return known
        raw = _text(self.content(digest))
        if raw is None:
            raise _NoTextError(f"{stage}: this is binary, not text")
        if len(raw) > _LARGE:
            with LARGE_TEXT:
                return normalize.canonicalize(stage, raw)
        made = normalize.canonicalize(stage, raw)
        with self._lock:
            if (stage, digest) not in self._texts:  # another thread may have made it
                self._texts[stage, digest] = made
                self._kept_characters += len(made.raw)
            while self._kept_characters > _KEPT_CHARACTERS:
                self._kept_characters -= len(self._texts.popitem(last=False)[1].raw)
        return made

    # answers

    def same(self, stage: str, base: str, head: str) -> bool:
        """Whether two artifacts, given by their digests, are the same. Raises DamagedArtifactError."""
        if base == head:
            return True
        if stage in MACHINE_STAGES:
            return self.code_digest(stage, base) == self.code_digest(stage, head)
        return self.compare(stage, base, head).equal

    def compare(self, stage: str, base: str, head: str) -> TextComparison:
        """The findings on two texts. Raises DamagedArtifactError."""
        if base == head:
            return TextComparison(equal=True, header_equal=True, findings=())
        question = ("compare", stage, base, head)
        found = self._once(question, lambda: self._compared(stage, base, head))
        if may_be_cured(found.findings):
            self._answers.pop(question, None)
        return found

    def _once(self, question: tuple[object, ...], answer: Callable[[], T]) -> T:
        """Launches that are one and the same input ask the same; so do the steps of one case."""
        if question not in self._answers:
            if len(self._answers) >= _KEPT_ANSWERS:
                self._answers.clear()
            self._answers[question] = answer()
        found: T = self._answers[question]
        return found

    def _compared(self, stage: str, base: str, head: str) -> TextComparison:
        try:
            found = normalize.compare(self.text(stage, base), self.text(stage, head), self._reprint)
        except _NoTextError:
            return _unequal(
                Finding(FindingKind.COMPARED_AS_BYTES, stage)
            )  # a stage of a backend that is not known
        except NormalizeError as error:
            # the text is not of its stage's IR, so nothing but its bytes can be compared, and they differ
            return _unequal(Finding(FindingKind.NOT_NORMALIZED, f"{stage}: {error.what}"[:180]))
        findings = tuple(found.findings)
        return TextComparison(equal=found.equal, header_equal=found.header_equal, findings=findings)

    def same_instructions(self, base: Mapping[str, str], head: Mapping[str, str]) -> bool:
        """Whether two machine codes differ in order and registers alone. By stage, their digests."""
        question = ("instructions", *sorted(base.items()), *sorted(head.items()))
        return self._once(question, lambda: self._has_same_instructions(base, head))

    def _has_same_instructions(self, base: Mapping[str, str], head: Mapping[str, str]) -> bool:
        try:
            if Stage.CUBIN in base and Stage.CUBIN in head:
                codes = (
                    binaries.machine_code(Stage.CUBIN, self.content(s[Stage.CUBIN])) for s in (base, head)
                )
                return rescheduled.same_instructions(*(code.sections for code in codes))
            texts = (self.text(Stage.AMDGCN, side[Stage.AMDGCN]) for side in (base, head))
            return rescheduled.same_lines(*(text.lines for text in texts))
        except (KeyError, NormalizeError):
            return False

    # digests

    def code_digest(self, stage: str, digest: str) -> str:
        """Digest of the executable contract of a binary. Raises NormalizeError and DamagedArtifactError."""
        return self._once(
            ("code", stage, digest), lambda: binaries.machine_code(stage, self.content(digest)).digest
        )

    def symbols(self, stage: str, digest: str) -> frozenset[str]:
        """Names that a loader can ask a binary for. Raises NormalizeError and DamagedArtifactError."""
        return self._once(("symbols", digest), lambda: binaries.symbols(stage, self.content(digest)))

    def text_digest(self, stage: str, digest: str) -> str:
        """Digest of a text's canonical lines. Raises NormalizeError and DamagedArtifactError."""
        return self._once(("text", stage, digest), lambda: self.text(stage, digest).digest)


def _text(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _unequal(finding: Finding) -> TextComparison:
    return TextComparison(equal=False, header_equal=False, findings=(finding,))


def may_be_cured(findings: Iterable[Finding]) -> bool:
    """Whether another attempt to read LLVM IR may say more, so that this answer is not to be kept."""
    return any(
        row.kind is FindingKind.LEXICAL_LLIR and row.detail in llvm_process.TRANSIENT for row in findings
    )
