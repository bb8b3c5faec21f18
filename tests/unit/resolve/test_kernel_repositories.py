"""Repositories of kernels: their description, what they pin, and how a side or a program of one is written."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from irdiff.errors import UsageError
from irdiff.resolve import kernel_repository, pins, programs, remote_repositories, tree_edits
from irdiff.resolve.kernel_repository import Plan

TABLE = "[kernels]\nworkloads = 'w'\n"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[kernels", "irdiff.toml of main is not TOML"),
        ("a = " + "[" * 100_000, "is not TOML"),
        ("\xff", "is not TOML"),
        ("#" * (2 << 20), "is larger than"),
        ("", "kernels: is missing"),
        ("kernels = 3", "kernels: "),
        ("[kernels]\n", 'program = "COMMAND" or workloads = "FOLDER" says what launches the kernels'),
        (TABLE + "program = 'b.py'\n", "says what launches the kernels"),
        ("[kernel]\nworkloads = 'w'\n", "kernel: there is no such key; did you mean 'kernels'?"),
        (TABLE + "imports = 'src'\n", "kernels.imports: there is no such key; did you mean 'import'?"),
        (TABLE + '"pi\\u001b[1m" = 1\n', r"kernels.'pi\x1b[1m': there is no such key"),
        ("[kernels]\nworkloads = '../w'\n", "kernels.workloads: '../w' is not a folder of the repository"),
        (TABLE + "import = ['src', '/etc']\n", "kernels.import.1: '/etc' is not a folder of the repository"),
        (TABLE + "toolchain = 3\n", "kernels.toolchain: Input should be a valid string"),
        (TABLE + "pin = ''\n", "kernels.pin: "),
    ],
)
def test_wrong_plans(text: str, mistake: str) -> None:
    with pytest.raises(UsageError, match=r"irdiff\.toml of main is ") as caught:
        kernel_repository.parse_plan(text.encode("latin-1"), "irdiff.toml of main")
    assert mistake in str(caught.value)


@pytest.mark.parametrize(
    ("paths", "word"),
    [
        ("pkg/k.py pkg/tuned.json pkg/.tuned.json pkg/.cache/tuned.json", None),
        ("bench/README.md .pins/lock.txt .tuned.json .cache/tuned.json", None),
        (".github/workflows/test.yml .gitignore", "other files"),
        ("pkg/README.md LICENSE", "documents"),
    ],
)
def test_what_no_kernel_is_made_of(paths: str, word: str | None) -> None:
    plan = Plan(workloads="bench", pin=".pins/lock.txt")  # imports from the root, as by default
    assert {tree_edits.beside_kernels(PurePosixPath(path), [plan]) for path in paths.split()} == {word}


# pins


def lock(*rows: str) -> str:
    return "".join(f'[[package]]\nname = "triton"\n{row}\n' for row in rows)


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("requirements.txt", "torch\nTriton==3.8.0 ; sys_platform == 'linux'\n", "3.8.0"),
        ("requirements.txt", "triton==3.8.0 ; sys_platform == 'win32'\ntriton==3.9.0\n", "3.9.0"),
        ("requirements.txt", "# triton==3.7.0\ntriton == 3.9.0+cu126 \\\n  --hash=sha256:0\n", "3.9.0+cu126"),
        ("requirements.txt", "pytorch-triton==3.2.0\ntriton>=3.0\n", None),
        ("requirements.txt", "triton>=3.8,==3.9.*\n", None),
        ("requirements.txt", "-r requirements/base.txt\n", "3.7.1"),
        ("requirements.txt", "-c missing.txt\n", None),
        ("requirements.lock", "numpy==2.0\ntriton==3.9.0\n", "3.9.0"),
        ("pyproject.toml", '[project]\ndependencies = ["torch", "triton==3.4.0"]\n', "3.4.0"),
        ("uv.lock", lock('version = "3.5.1"'), "3.5.1"),
        ("uv.lock", lock(
            'version = "3.9.0"\nresolution-markers = ["sys_platform == \'linux\'"]',
            'version = "3.2.0"\nresolution-markers = ["sys_platform != \'linux\'"]',
        ), "3.9.0"),
        ("pdm.lock", lock('version = "3.9.0"\nmarker = "sys_platform == \'win32\'"'), None),
        ("pylock.toml", '[[packages]]\nname = "triton"\nversion = "3.6.0"\n', "3.6.0"),
        ("poetry.lock", "not toml", None),
    ],
)  # fmt: skip
def test_a_pin_means_what_the_tools_that_write_it_mean(name: str, text: str, version: str | None) -> None:
    files = {"requirements/base.txt": b"-r ../requirements.txt\ntriton==3.7.1\n"}
    assert pins.version(name, text.encode(), read=files.get) == version


# programs, pushes and repositories elsewhere


def test_programs() -> None:
    for command, words, name in (
        ("bench/run.py --small", ["bench/run.py", "--small"], ("run", "small")),
        ("python bench/run.py", ["bench/run.py"], ("run", "run")),
        ("python3 -m pkg.bench 'a b'", ["-m", "pkg.bench", "a b"], ("pkg_bench", "a-b")),
        ("pytest tests/test_a.py", ["-m", "pytest", "tests/test_a.py"], ("pytest", "tests-test_a.py")),
    ):
        assert (programs.words_of(command), programs.name_of(words)) == (words, name)
    for wrong in ("", "-m", "/tmp/run.py", "../run.py", "run.py 'open"):
        with pytest.raises(UsageError, match="--program"):
            programs.words_of(wrong)


ELSEWHERE = [
    ("triton-lang/triton@main", "https://github.com/triton-lang/triton", "main"),
    ("a/b.c@release/3.4.x", "https://github.com/a/b.c", "release/3.4.x"),
    ("https://host.example/x/y.git@v1.0", "https://host.example/x/y.git", "v1.0"),
    ("https://user@host.example/x@v1", "https://user@host.example/x", "v1"),
    ("ssh://git@host.example/x/y@1a2b", "ssh://git@host.example/x/y", "1a2b"),
    ("git@host.example:x/y.git@main", "git@host.example:x/y.git", "main"),
    ("file:///srv/x@main~2", "file:///srv/x", "main~2"),
]
HERE = [
    "main",
    "HEAD~2",
    "origin/main",
    "main@{1}",
    "v1.0",
    ".",
    "@",
    "a/b@{upstream}",
    "triton==3.9.0",
    "a/b@",
]


def test_a_repository_elsewhere_or_a_revision_of_the_one_at_hand() -> None:
    found = [remote_repositories.parse(spec) for spec, *_ in ELSEWHERE]
    assert [(row.url, row.revision) if row else None for row in found] == [
        tuple(row) for _, *row in ELSEWHERE
    ]
    assert [spec for spec in HERE if remote_repositories.parse(spec)] == []
