"""Symbolic links of a tree, followed within it: what a build that reads the link would read."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping

from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import TreeEntry

_MAX_STEPS = 16
"""Links that lead through links; the kernel gives up after 40."""


def targets(tree: Mapping[str, TreeEntry]) -> dict[str, str]:
    """Path of every link → what it says."""
    entries = [entry for entry in tree.values() if entry.is_link]
    return {path: os.fsdecode(content) for path, content in repository.read(entries).items()}


def followed(tree: Mapping[str, TreeEntry], links: Mapping[str, str]) -> dict[str, TreeEntry]:
    """The files of the tree, and for every link the file, or each file of the folder, that it leads to.

    A link that leads out of the tree, or in a circle, leads to nothing.
    """
    files = {path: entry for path, entry in tree.items() if entry.is_file}
    for _ in range(_MAX_STEPS if links else 0):
        found: dict[str, TreeEntry] = {}
        for path, text in links.items():
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
            if target in files:
                found[path] = files[target]
            elif not path.startswith(f"{target}/") and target != ".":
                inside = f"{target}/"
                behind = ((name, entry) for name, entry in files.items() if name.startswith(inside))
                found.update((f"{path}/{name[len(inside) :]}", entry) for name, entry in behind)
        if found.items() <= files.items():
            break
        files.update(found)
    return files
