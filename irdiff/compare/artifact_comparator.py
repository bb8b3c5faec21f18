"""Compares two artifacts of a stage: they are the same where their bytes or canonical forms are.

The verdict, the determinism check, the acceptance of a change and attribution all ask here. What a question
needs of an artifact is made once while there is room.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from irdiff import texts
from irdiff.backends import machine_code
from irdiff.backends.stages import BINARIES
from irdiff.errors import NormalizeError, StoreError
from irdiff.findings import Finding, FindingKind
from irdiff.ir.canonical import CanonicalText, Reprint, TextEquality
from irdiff.ir.llir import llvm_process
from irdiff.parallel import LARGE_TEXT
from irdiff.store import Store

T = TypeVar("T")

_KEPT_CHARACTERS = 16 << 20
"""The most characters of canonical texts that are kept. The texts of one case have about a million."""
_LARGE = 4 << 20
_KEPT_ANSWERS = 100_000
_ARTIFACTS = 20


class DamagedArtifactError(StoreError):
    """An artifact that a record names cannot be read back. It is gone by then, and with it the record."""

    def __init__(self, digest: str) -> None:
        super().__init__(f"the artifact {digest} of the cache is damaged", hint="irdiff store verify")


def intact(ask: Callable[[], T]) -> T:
    """Asks again, for as many artifacts as a case may have, where one turns out to be damaged: what made it
    is no record any more, and is compiled anew.
    """
    for _ in range(_ARTIFACTS):
        with contextlib.suppress(DamagedArtifactError):
            return ask()
    return ask()


class ArtifactComparator:
    """Thread-safe."""

    def __init__(self, store: Store, reprint: Reprint) -> None:
        self.store = store
        self._reprint = reprint
        self._texts: OrderedDict[tuple[str, str], CanonicalText] = OrderedDict()
        self._kept_characters = 0
        self._answers: dict[tuple[str, ...], Any] = {}
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
            cached = self._texts.get((stage, digest))
            if cached is not None:
                self._texts.move_to_end((stage, digest))
                return cached
        content = self.content(digest)
        if not _is_text(content):
            raise NormalizeError(f"{stage}: this is binary, not text")
        raw = content.decode()
        if len(raw) > _LARGE:
            with LARGE_TEXT:
                return texts.canonicalize(stage, raw)
        canonical = texts.canonicalize(stage, raw)
        with self._lock:
            if (stage, digest) not in self._texts:  # another thread may have made it
                self._texts[stage, digest] = canonical
                self._kept_characters += len(canonical.raw)
            while self._kept_characters > _KEPT_CHARACTERS:
                self._kept_characters -= len(self._texts.popitem(last=False)[1].raw)
        return canonical

    # answers

    def same(self, stage: str, base: str, head: str) -> bool:
        """Compares two artifacts, given by their digests. Raises DamagedArtifactError."""
        if base == head:
            return True
        if stage in BINARIES:
            return self.code_digest(stage, base) == self.code_digest(stage, head)
        return self.compare(stage, base, head).equal

    def compare(self, stage: str, base: str, head: str) -> TextEquality:
        """Raises DamagedArtifactError."""
        if base == head:
            return TextEquality(equal=True, header_equal=True, findings=())
        question = ("compare", stage, base, head)
        equality = self._once(question, lambda: self._compared(stage, base, head))
        if may_be_cured(equality.findings):
            self._answers.pop(question, None)
        return equality

    def _once(self, question: tuple[str, ...], answer: Callable[[], T]) -> T:
        """Launches of one input, and the steps of one case, ask the same questions."""
        cached: T | None = self._answers.get(question)
        if cached is None:
            if len(self._answers) >= _KEPT_ANSWERS:
                self._answers.clear()
            cached = self._answers[question] = answer()
        return cached

    def _compared(self, stage: str, base: str, head: str) -> TextEquality:
        try:
            return texts.compare(self.text(stage, base), self.text(stage, head), self._reprint)
        except NormalizeError as error:
            # the texts are not of their stage's IR: only their bytes can be compared, and these differ
            finding = Finding(FindingKind.NOT_NORMALIZED, f"{stage}: {error.what}"[:180])
            if not (_is_text(self.content(base)) and _is_text(self.content(head))):
                finding = Finding(FindingKind.COMPARED_AS_BYTES, stage)
            return TextEquality(equal=False, header_equal=False, findings=(finding,))

    # digests

    def code_digest(self, stage: str, digest: str) -> str:
        """Digest of the executable contract of a binary. Raises NormalizeError and DamagedArtifactError."""
        return self._once(
            ("code", stage, digest), lambda: machine_code.machine_code(stage, self.content(digest)).digest
        )

    def symbols(self, stage: str, digest: str) -> frozenset[str]:
        """Names that a driver finds in a binary. Raises NormalizeError and DamagedArtifactError."""
        return self._once(("symbols", digest), lambda: machine_code.symbols(stage, self.content(digest)))

    def text_digest(self, stage: str, digest: str) -> str:
        """Digest of a text's canonical lines. Raises NormalizeError and DamagedArtifactError."""
        return self._once(("text", stage, digest), lambda: self.text(stage, digest).digest)


def _is_text(content: bytes) -> bool:
    try:
        return b"\0" not in content and content.decode() is not None
    except UnicodeDecodeError:
        return False


def may_be_cured(findings: Iterable[Finding]) -> bool:
    """Returns True if another attempt to read LLVM IR may give more. Such an answer must not be kept."""
    return any(
        finding.kind is FindingKind.LEXICAL_LLIR and finding.detail in llvm_process.TRANSIENT
        for finding in findings
    )
