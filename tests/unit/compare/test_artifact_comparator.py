import pytest

from irdiff.compare import artifact_comparator as module
from irdiff.compare.artifact_comparator import ArtifactComparator, DamagedArtifactError
from irdiff.errors import NormalizeError
from irdiff.normalize import Printed
from irdiff.store import Store
from tests.programs.mutation.artifacts import of_stage
from tests.unit.compiled import CUBIN, DEBUG_CUBIN, OTHER_CUBIN, no_llvm


@pytest.fixture
def comparator(tmp_path):
    return ArtifactComparator(Store(tmp_path), no_llvm)


@pytest.mark.parametrize(
    ("stage", "base", "head", "same"),
    [
        ("ttgir", b"not IR", b"not IR", True),
        ("ttgir", b"not IR", b"nor this", False),
        ("ttgir", b"\xff", b"\xfe", False),
        ("llir", b"define void @k() {\n  ret void\n}\n", b"; c\ndefine void @k() {\n  ret void\n}\n", True),
        ("cubin", CUBIN, DEBUG_CUBIN, True),
        ("cubin", CUBIN, OTHER_CUBIN, False),
    ],
)
def test_artifacts_are_compared_as_what_they_are(comparator, stage, base, head, same):
    assert comparator.same(stage, comparator.store.put(base), comparator.store.put(head)) is same


def test_what_is_damaged_or_gone_is_the_same_as_nothing(comparator):
    with pytest.raises(NormalizeError):
        comparator.same("cubin", *(comparator.store.put(content) for content in (b"no ELF", b"nor this")))
    with pytest.raises(DamagedArtifactError):
        comparator.same("ttgir", comparator.store.put(b"module {\n}\n"), "0" * 64)


def test_texts_are_kept_up_to_a_bound_and_those_asked_for_last_longest(comparator, monkeypatch):
    artifacts = of_stage("ttgir")[:4]
    digests = [comparator.store.put(artifact.content) for artifact in artifacts]
    first, second, third, fourth = (len(artifact.text) for artifact in artifacts)
    monkeypatch.setattr(module, "_KEPT_CHARACTERS", max(first + second + third, first + third + fourth))
    texts = {digest: comparator.text("ttgir", digest) for digest in digests[:3]}
    comparator.text("ttgir", digests[0])
    comparator.text("ttgir", digests[3])
    kept = [
        comparator.text("ttgir", digest) is texts[digest] for digest in (digests[0], digests[2], digests[1])
    ]
    assert kept == [True, True, False], "the second was asked for longest ago"


@pytest.mark.parametrize(("why_not", "times"), [("died", 2), ("unavailable", 2), ("too-long", 1)])
def test_a_reader_that_failed_is_asked_again(tmp_path, why_not, times):
    asked = []
    failed = Printed(text=None, why_not=why_not)
    comparator = ArtifactComparator(Store(tmp_path), lambda text: asked.append(text) or failed)
    llir = "define i32 @k(i32 %x) {\n  ret i32 SOME\n}\n"
    base, head = (comparator.store.put(llir.replace("SOME", value).encode()) for value in ("%x", "1"))
    for _ in range(2):
        assert not comparator.same("llir", base, head)
    assert len(asked) == times
