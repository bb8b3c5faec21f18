"""Checkouts of Triton that tests make of texts: a blob is named by its content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.repository import GitStore

STORE = GitStore(git_dir=Path("/none"), common_dir=Path("/none"), worktree=None, objects=None, caller={})
CheckoutOf = Callable[..., Checkout]
"""`checkout_of(files, links, modes)`, each by path."""
Texts = Mapping[str, str]
