"""The door to native builds, on a stand-in: a `triton` whose native part is one C file of a second or two."""

import contextlib
import signal
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff.cli.toolchain_commands import toolchain_group
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains import checkout, commits, environments, native, repository
from tests.integration.conftest import started
from tests.programs.checkouts import commit, edit, git, new_repository, write
from tests.texts import files_of
from tests.waiting import wait_for


@pytest.fixture
def project(tmp_path):
    repo = new_repository(tmp_path / "stand in")
    write(repo, files_of("native_builds"))
    commit(repo, "Stand-in")
    return repo


class Builder:
    """Resolves revisions, with what was shown on the way."""

    def __init__(self, repo, config):
        self.repo, self.config, self.shown = repo, config, []

    def read(self, revision):
        store = repository.open_store(self.repo, self.config)
        return checkout.read(repository.snapshot(store, revision, self.config), self.config)

    def toolchain(self, revision):
        found = self.read(revision)
        with environments.showing(self.shown.append):
            return commits.toolchain_of(found, self.config, build=True)[0]

    def __call__(self, revision):
        """What the native part of the revision's toolchain says."""
        code = "import triton; print(triton.VALUE, getattr(triton, 'X', ''))"
        words = [self.toolchain(revision).python, "-c", code]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    @property
    def builds(self):
        return len([line for line in self.shown if "native build native-" in line])

    @property
    def kept(self):
        return native.kept_trees(self.config)

    def asks(self, *words):
        """The output of `irdiff toolchain …`."""
        command = [words[0], "--cache", str(self.config.cache), *words[1:]]
        return CliRunner().invoke(toolchain_group, command, standalone_mode=False).output


@pytest.fixture
def build(project, own_config):
    return Builder(project, own_config)


def native_environments(config):
    paths = config.toolchains.glob("native-*")
    return sorted(path.name for path in paths if path.is_dir() and path.suffix != ".tree")


def test_a_native_part_is_built_once_for_what_shares_it(project, build):
    assert build("HEAD") == "1"
    assert any("native build 2/3" in line for line in build.shown)
    assert build.builds == 1

    edit(project, "python/triton/__init__.py", "VALUE =", "X = 'python'\nVALUE =")
    write(project, {"docs/index.md": "more\n"})
    commit(project, "Python and documents")
    assert build("HEAD") == "1 python"
    assert build.builds == 1, "the digest is equal: no build"

    edit(project, "include/value.h", "1", "2")
    assert build(".") == "2 python", "uncommitted native changes count"
    assert build.builds == 2
    commit(project, "Another value")
    assert build("HEAD") == "2 python"
    assert build("HEAD~1") == "1 python"
    assert build.builds == 2
    state = [native.environments.find(name, build.config).state for name in native_environments(build.config)]
    assert {row["version"] for row in state} == {"9.9.9"}
    assert all("c++" in row["environment"] and row["python_files"] for row in state)


def with_variables(config, variables):
    return replace(config, tool_environment={**config.tool_environment, **variables})


def test_the_build_environment_counts(build):
    def name(**variables):
        return native.key_of_build(build.read("HEAD"), with_variables(build.config, variables)).name

    assert len({name(), name(DEBUG="1"), name(LLVM_SYSPATH="/nowhere"), name(TRITON_BUILD_PROTON="OFF")}) == 4
    others = ("MAX_JOBS", "CCACHE_DIR", "TRITON_CACHE_DIR", "HOME")
    assert {name(**{other: "/x"}) for other in others} == {name()}


def test_a_comment_makes_another_build_and_the_same_toolchain(project, build):
    """Where no path is built in, as with a compiler cache: without debug information there is none here."""
    build.config = with_variables(build.config, {"CFLAGS": "-g0"})
    edit(project, "lib/native.c", "static struct", "/* a comment */ static struct")
    commit(project, "A comment that moves no line")
    made = [build.toolchain(revision) for revision in ("HEAD~1", "HEAD")]
    assert len(native_environments(build.config)) == 2
    assert made[0].python != made[1].python, "each has its own file: `--no-cache` runs both"
    assert made[0].digest == made[1].digest


def test_a_broken_build_is_one_clear_error(project, build):
    edit(project, "lib/native.c", "VALUE);", "VALU);")
    commit(project, "Does not compile")
    with pytest.raises(ToolchainError) as caught:
        build("HEAD")
    for said in ("its native build failed", "VALU", "error:"):
        assert said in caught.value.what
    assert "[2/3] Building C object" in Path(caught.value.log_path).read_text()
    assert native_environments(build.config) == [], "no half-made environment stays"
    [name] = build.kept
    tree = build.config.toolchains / f"{name}.tree"
    assert str(tree) in caught.value.what
    assert (tree / "source" / "lib" / "native.c").is_file(), "for the diagnosis"
    build.shown.clear()
    with pytest.raises(ToolchainError):
        build("HEAD")
    assert any("goes on where an earlier build ended" in line for line in build.shown)
    assert f"{name} did not end" in " ".join(build.asks("list").split())
    assert f"removed {name}.tree" in build.asks("prune")
    assert build.kept == []
    edit(project, "lib/native.c", "VALU);", "VALUE);")
    commit(project, "Compiles again")
    assert build("HEAD") == "1"
    assert build.kept == [], "what went well leaves no tree"


def test_a_wheel_that_does_not_start_is_kept(project, build):
    init = "PyInit_native(void) {"
    edit(project, "lib/native.c", init, f"{init} extern int gone(void); gone();")
    commit(project, "Builds and does not start")
    with pytest.raises(ToolchainError) as caught:
        build("HEAD")
    assert "was built but does not start" in caught.value.what
    assert "undefined symbol: gone" in caught.value.what
    wheel = next(word for word in caught.value.what.split() if word.endswith(".whl"))
    assert zipfile.is_zipfile(wheel.removesuffix(":")), "the message names files that there are"
    assert "defines gone" in caught.value.hint
    assert Path(caught.value.log_path).is_file()


def _start(project, config, **more):
    return started(config.cache, "toolchain", "build", "HEAD", cwd=project, **more)


def _log_of_begun(config):
    """The log of the build, once the build has begun."""
    begun = wait_for(
        lambda: [log for log in config.toolchains.glob("native-*.log") if "[1/3]" in log.read_text()]
    )
    return begun[0]


WIDE = [pytest.param(number, marks=pytest.mark.wide) for number in (signal.SIGTERM, signal.SIGHUP)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, *WIDE])
def test_killed_in_mid_build(project, build, tmp_path, number):
    running = _start(project, build.config, STAND_IN_UNTIL=str(tmp_path / "never"))
    log = _log_of_begun(build.config)
    running.send_signal(number)
    running.communicate()
    assert running.returncode == (-number if number == signal.SIGKILL else 130)
    wait_for(lambda: not at_work(build.config))  # what it started goes with it
    assert not list(build.config.toolchains.glob("native-*/irdiff.json"))
    assert len(build.kept) == 1, "the same build goes on there"
    again = _start(project, build.config)
    _, stderr = again.communicate()
    assert again.returncode == 0, stderr
    assert "goes on where an earlier build ended" in stderr
    assert build.kept == []
    assert log.read_text().count("[1/3] Configuring") == 1, "the second build wrote its own log"
    assert not at_work(build.config)


def at_work(config):
    """Processes whose working folder is below the toolchains."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):  # one may end before it is looked at
        with contextlib.suppress(OSError):
            found += [path] if config.toolchains in (path / "cwd").readlink().parents else []
    return found


def test_two_at_once_build_once(project, build, tmp_path):
    go_on = tmp_path / "go on"
    first = _start(project, build.config, STAND_IN_UNTIL=str(go_on))
    log = _log_of_begun(build.config)
    second = _start(project, build.config)
    said = next((line for line in second.stderr if "another process makes native-" in line), "nothing of it")
    go_on.touch()
    assert "waiting for it; follow it: tail -f" in said
    ends = [process.communicate() for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], ends
    assert list(build.config.toolchains.glob("native-*.log")) == [log]
    assert log.read_text().count("[1/3] Configuring") == 1


def test_without_a_build_it_says_how_to_get_one(project, irdiff, own_config):
    done = irdiff("compare", "HEAD", "HEAD", "--no-cache", "--no-build", cwd=project)
    assert done.code == 3
    assert "irdiff toolchain build HEAD" in done.stderr
    key = irdiff("toolchain", "key", "HEAD", "--paths", cwd=project)
    assert key.stdout.split() == ["include/value.h", "lib/native.c", "pyproject.toml", "setup.py"]
    assert git(project, "status", "--porcelain") == ""
