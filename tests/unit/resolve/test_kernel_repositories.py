"""Repositories of kernels: their description, what they pin, and how a side or a program of one is written."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from irdiff.resolve import pins, remote_repositories, tree_edits
from irdiff.resolve.kernel_repository import Plan


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
