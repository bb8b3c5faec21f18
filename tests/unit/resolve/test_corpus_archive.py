"""Recorded corpora that travel as one file: what is refused, what is kept of several."""

import io
import tarfile

import pytest

from irdiff import config as configuration
from irdiff.errors import CorpusError
from irdiff.resolve import corpus, corpus_archive
from tests.texts import text_of
from tests.unit import runs

WORKLOAD = text_of("corpus_archive/workload.py")


def workload(folder, name, text=WORKLOAD):
    path = folder / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return folder


def launch(name, digest, target="sm_90"):
    return runs.launch(f"{name}@{target}", digest=digest)


@pytest.fixture
def config(tmp_path):
    return configuration.load(cache=tmp_path / "cache")


def test_an_archive_is_the_folder_that_it_was_made_of(tmp_path, config):
    folder = workload(tmp_path / "recorded", "train/add")
    for name in ("one.tar.gz", "two.tar.gz"):
        (tmp_path / name).write_bytes(corpus_archive.packed(folder))
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    found = corpus_archive.unpacked(str(tmp_path / "one.tar.gz"), config)
    assert corpus.load(found).digest == corpus.load(folder).digest
    assert corpus_archive.unpacked((tmp_path / "two.tar.gz").as_uri(), config) == found
    with pytest.raises(CorpusError, match="cannot be read"):
        corpus_archive.unpacked((tmp_path / "no" / "lost.tar.gz").as_uri(), config)
    assert not (tmp_path / "no").exists()


def tar(name):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo(name))
    return content.getvalue()


@pytest.mark.parametrize(
    "content", [b"", b"no archive", tar("../outside.py"), tar("only/_helper.py")], ids=range(4)
)
def test_what_is_no_corpus_leaves_nothing(tmp_path, config, content):
    (tmp_path / "bad.tar.gz").write_bytes(content)
    with pytest.raises(CorpusError):
        corpus_archive.unpacked(str(tmp_path / "bad.tar.gz"), config)
    assert [*(config.cache / "corpora").iterdir()] == [] and not (tmp_path / "outside.py").exists()


def test_corpora_are_joined_and_equal_launches_are_kept_once(tmp_path):
    one, two = (workload(tmp_path / name, "train/add") for name in ("one", "two"))
    workload(two, "serve/add")
    workload(two, "train/mul", WORKLOAD.replace("add", "mul"))
    changed = workload(tmp_path / "three", "train/add", WORKLOAD.replace("36", "40"))
    corpus_archive.join([one, two, changed], tmp_path / "all")
    names = corpus.load(tmp_path / "all").workloads
    assert names == ("serve/add", "train/add", "train/add_2", "train/mul")

    rows = [
        launch("serve/add:small", "1"),
        launch("serve/add:large", "2"),
        launch("train/add:small", "1"),
        launch("train/add:large", "2"),
        launch("train/add_2:small", "1"),
        launch("train/add_2:large", "3"),
        launch("train/mul:small/mul#2", None),
        launch("train/mul:large", None),
    ]
    kept = corpus_archive.distinct(rows)
    corpus_archive.drop(tmp_path / "all", {corpus_archive.entry_of(row) for row in rows} - kept)
    assert corpus.load(tmp_path / "all").workloads == ("serve/add", "train/add_2", "train/mul")
    left = (tmp_path / "all" / "train" / "add_2.py").read_text()
    assert left == WORKLOAD.replace("36", "40").replace(
        '    "small": launch(\n        add[(1, 1, 1)], 4,\n    ),\n', ""
    )


def test_launches_that_differ_on_one_target_are_two():
    rows = [launch("a/b:c", "1"), launch("a/b:d", "1"), launch("a/b:d", "2", "gfx942")]
    assert corpus_archive.distinct(rows) == {("a/b", "c"), ("a/b", "d")}


def test_the_largest_workloads_go_first(tmp_path):
    for name, size in (("a/one", 100), ("a/two", 300), ("b/one", 200)):
        workload(tmp_path, name, "#" * size)
    assert corpus_archive.shrink(tmp_path, 250) == ["a/two", "b/one"]
    assert corpus_archive.shrink(tmp_path, 100) == []
