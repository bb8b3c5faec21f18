import shutil
from pathlib import Path

import pytest

from tests.programs import checkouts


@pytest.fixture(scope="session")
def release_repository(newest, tmp_path_factory):
    """Triton 3.9.0's Python part as a repository of one commit; copied by `triton_repository`."""
    repo = tmp_path_factory.mktemp("release") / "triton"
    checkouts.triton_checkout(repo, Path(newest.root).parent)
    return repo


@pytest.fixture
def triton_repository(release_repository, tmp_path):
    """A checkout of its own, at a path with a space and letters beyond ASCII."""
    repo = tmp_path / "my työ" / "triton"
    shutil.copytree(release_repository, repo, symlinks=True)
    return repo


@pytest.fixture
def own_cache(cache):
    """The cache with toolchains of its own, those of releases shared."""
    shared = (cache / "toolchains").resolve()
    (cache / "toolchains").unlink()
    (cache / "toolchains").mkdir()
    for path in shared.glob("triton-*"):
        (cache / "toolchains" / path.name).symlink_to(path)
    return cache


@pytest.fixture
def own_config(own_cache, config):
    del own_cache
    return config


@pytest.fixture
def adopted(irdiff, own_cache, triton_repository):
    """The checkout, over the release that it is the Python part of."""
    done = irdiff("toolchain", "adopt", "HEAD", "triton==3.9.0", cwd=triton_repository)
    assert done.code == 0, done.stderr
    return triton_repository
