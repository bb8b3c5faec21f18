"""A bucket on a server that speaks S3, in a process of its own, between two machines."""

import shutil
from pathlib import Path

import obstore
import pytest
from obstore.store import from_url

from irdiff.config import SharedStoreConfig, StoreMode
from irdiff.resolve import corpus_archive
from irdiff.store import Store
from irdiff.store.shared import SharedStore
from tests.s3_server import BUCKET, serving

ROOT = Path(__file__).parents[2]
TOOLCHAIN, PLACE = "a" * 64, ("matmul/tma", "sm_90")
CASES = ("--case", "elementwise/vector_add", "--target", "sm_90", "--target", "gfx942")


@pytest.fixture
def server():
    with serving() as found:
        yield found


@pytest.fixture
def url(server, monkeypatch):
    for name, value in server.variables().items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/nightly"


def shared(store, url, mode):
    return SharedStore(Store(store), SharedStoreConfig(url=url, mode=mode))


def quiet(_):
    """No progress."""


def test_a_comparison_takes_what_another_machine_made_and_says_the_same(url, cache, irdiff, tmp_path):
    """The catalogs of the shipped corpus too: no compiler is started."""
    runs = []
    for machine, mode in (("one", "write"), ("two", "read")):
        words = ("compare", "triton==3.8.0", "triton==3.9.0", *CASES, "--store-mode", mode)
        done = irdiff(*words, IRDIFF_STORE=url)
        assert done.run is not None, done.stderr
        runs.append(done.run)
        (cache / "results").rename(tmp_path / f"store of {machine}")
    one, two = runs
    assert any("bundles left there" in note for note in one["notes"])
    assert any("bundles taken" in note for note in two["notes"])
    assert two["environment"]["address-randomization"] == "no compiler was started"
    for name in ("cases", "groups", "summary", "launches"):
        assert one[name] == two[name]


def test_a_bucket_that_is_not_there_and_a_server_that_dies_leave_the_run_whole(url, server, tmp_path):
    one = shared(tmp_path / "one", url, StoreMode.WRITE)
    one.pull([TOOLCHAIN], [PLACE], quiet)
    digest = one._store.put(b"text")
    missing = shared(tmp_path / "two", "s3://another/nightly", StoreMode.WRITE)
    missing.pull([TOOLCHAIN], [PLACE], quiet)
    assert "does not answer" in missing.trouble and len(list(missing.notes())) == 1
    server.process.kill()
    server.process.wait()
    one.push(quiet)
    assert "does not answer" in one.trouble
    assert Store(tmp_path / "one").get(digest) == b"text"


def test_a_corpus_comes_from_a_bucket(url, irdiff, tmp_path):
    folder = tmp_path / "recorded" / "elementwise"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "corpus" / "elementwise" / "vector_add.py", folder)
    obstore.put(
        from_url(url, client_options={"allow_http": True}),
        "kernels.tar.gz",
        corpus_archive.packed(folder.parent),
    )
    found = irdiff("corpus", "list", "--corpus", f"{url}/kernels.tar.gz", "--target", "sm_90")
    assert "elementwise/vector_add:" in found.stdout, found.stderr
    lost = irdiff("corpus", "list", "--corpus", f"{url}/lost.tar.gz", "--target", "sm_90")
    assert lost.code == 4 and "lost.tar.gz" in lost.stderr
