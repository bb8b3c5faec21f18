from __future__ import annotations

import pytest

from irdiff.resolve import remote_repositories
from irdiff.resolve.remote_repositories import Remote


@pytest.mark.parametrize(
    ("spec", "url", "revision"),
    [
        ("triton-lang/triton@main", "https://github.com/triton-lang/triton", "main"),
        ("a/b.c@release/3.4.x", "https://github.com/a/b.c", "release/3.4.x"),
        ("https://host.example/x/y.git@v1.0", "https://host.example/x/y.git", "v1.0"),
        ("https://user@host.example/x@v1", "https://user@host.example/x", "v1"),
        ("ssh://git@host.example/x/y@1a2b", "ssh://git@host.example/x/y", "1a2b"),
        ("git@host.example:x/y.git@main", "git@host.example:x/y.git", "main"),
        ("file:///srv/x@main~2", "file:///srv/x", "main~2"),
    ],
)
def test_repositories_elsewhere(spec: str, url: str, revision: str) -> None:
    assert remote_repositories.parse(spec) == Remote(url=url, revision=revision)


@pytest.mark.parametrize(
    "spec",
    [
        "main",
        "HEAD~2",
        "origin/main",
        "main@{1}",
        "v1.0",
        ".",
        "a/b@{upstream}",
        "triton==3.9.0",
        "a/b@",
        "@",
    ],
)
def test_revisions_of_the_checkout_at_hand(spec: str) -> None:
    assert remote_repositories.parse(spec) is None
