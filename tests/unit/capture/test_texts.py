"""A kernel's text, read from the corpus that launches it, and what is launched, without what both sides resolve alike."""

from dataclasses import replace

import pytest

from irdiff.capture import kernel_sources, launch_texts
from irdiff.resolve.corpus import Corpus
from irdiff.store import Store
from tests.texts import text_of
from tests.unit import runs

KERNEL = text_of("kernel_sources/kernel.py")


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.py").write_text(KERNEL)
    return Corpus(root=tmp_path, workloads=("a/b",), digest="")


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        ("k", "def k(x):\n    return x + 1"),
        ("other", "def other(self):\n    return 2"),
        ("bare", "def bare():\n    'nothing but a docstring'"),
        ("unknown", ""),
    ],
)
def test_decorators_docstrings_and_comments_are_no_part_of_it(corpus, launch, kernel, text):
    assert kernel_sources.source_of(corpus, replace(launch, kernel=kernel)).replace('"""', "'") == text


@pytest.mark.parametrize("content", [b"def k(:", b"\xff\xfe def k(): pass", b"def k(): pass\0"])
def test_a_file_that_is_no_python_has_no_kernels(corpus, launch, content):
    (corpus.root / "broken.py").write_bytes(content)
    assert kernel_sources.source_of(corpus, replace(launch, source_path="broken.py")) == ""


def test_only_files_of_the_corpus_are_read(corpus, launch):
    outside = str(corpus.root / "a/b.py")
    assert kernel_sources.source_of(corpus, launch)
    assert kernel_sources.source_of(corpus, replace(launch, source_path=outside)) == ""
    assert kernel_sources.source_of(corpus, replace(launch, source_path="a/gone.py")) == ""
    assert kernel_sources.source_of(corpus, replace(launch, source_path="a")) == ""


CASE = "matmul/tma:fp16@sm_90"


def pair(store, base, head, **options):
    def side(text, num_stages):
        launched = runs.kept(store, {"launch": text})["launch"]
        resolved = {"num_warps": "4", "num_stages": num_stages}
        return runs.launch(CASE, launched=launched, options=resolved)

    return runs.pair(CASE, side(base, "2"), side(head, options.get("num_stages", "2")))


def texts(store, found):
    return [store.get(side.launched.digest).decode() for side in (found.base, found.head)]


def test_a_default_written_out_is_no_other_launch_and_what_is_typed_otherwise_stays(tmp_path):
    store, stages = Store(tmp_path), "  option num_stages: 3\n"
    for typed, stays, resolved in (("  option warmup: True\n",) * 2 + ("2",), (stages, stages, "3")):
        made = pair(store, "call 1\n", f"call 1\n  option num_warps: 4\n{typed}", num_stages=resolved)
        assert texts(store, launch_texts.resolved(made, store)) == ["call 1\n", f"call 1\n{stays}"]


def test_numbers_of_storages_are_compared_where_both_sides_make_equally_many(tmp_path):
    store = Store(tmp_path)
    line = "  argument 1: fp32 [8], storage 0, number {} of {} made as fp32 [8, 4], filled with zeros\n"
    for total, same in ((2, False), (3, True)):
        found = launch_texts.resolved(pair(store, line.format(1, 2), line.format(2, total)), store)
        base, head = texts(store, found)
        assert (base == head) is same
    assert base == "  argument 1: fp32 [8], storage 0, filled with zeros\n"


def test_a_field_of_a_descriptor_that_only_one_release_has_counts_where_it_is_set(tmp_path):
    store, known = Store(tmp_path), "  argument 1 field padding: 'zero', its default\n"
    for value, same in (("False, its default", True), ("True", False)):
        head = f"{known}  argument 1 field round: {value}\n"
        base, head = texts(store, launch_texts.resolved(pair(store, known, head), store))
        assert (base == head) is same
    other = known.replace("zero", "nan")
    base, head = texts(store, launch_texts.resolved(pair(store, known, other), store))
    assert base != head, "a default that a release changes"
