"""A kernel's text, read from the corpus that launches it."""

from dataclasses import replace

import pytest

from irdiff.capture import kernel_sources
from irdiff.resolve.corpus import Corpus
from tests.texts import text_of

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
