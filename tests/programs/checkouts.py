"""Repositories that tests make: the Python part of an installed Triton as a checkout, and edits to it."""

import os
import shutil
import subprocess

from tests.texts import files_of

SQUARE = files_of("checkouts/square")
"""A kernel and its workload."""
NVIDIA, AMD = (f"third_party/{vendor}/backend/compiler.py" for vendor in ("nvidia", "amd"))
SEMANTIC = "python/triton/language/semantic.py"
"""Files of a checkout of Triton."""
PLAN = '[kernels]\nworkloads = "bench"\ntoolchain = "triton==3.9.0"\n'
"""Their `irdiff.toml`."""


def git(repo, *words):
    names = ("AUTHOR", "COMMITTER")
    who = {f"GIT_{name}_{key}": value for name in names for key, value in (("NAME", "T"), ("EMAIL", "t@t"))}
    env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ["git", "-C", repo, "-c", "protocol.file.allow=always", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.strip()


def new_repository(repo):
    repo.mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    return repo


def write(repo, files):
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text, encoding="utf-8")


def commit(repo, message):
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", message)
    return git(repo, "rev-parse", "HEAD")


def triton_checkout(repo, site):
    """A repository whose first commit is the Python part of the Triton in `site`; returns the commit."""
    new_repository(repo)
    package = repo / "python" / "triton"
    for path in (site / "triton").rglob("*"):
        if path.suffix in (".py", ".c") and "_C" not in path.parts:
            place = package / path.relative_to(site / "triton")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
    third_party = repo / "third_party"
    for backend, device in (("nvidia", "cuda"), ("amd", "hip")):
        _move(package / "backends" / backend, third_party / backend / "backend")
        _move(package / "language" / "extra" / device, third_party / backend / "language" / device)
        _move(package / "tools" / "extra" / device, third_party / backend / "tools" / device)
    _move(package / "profiler", third_party / "proton" / "proton")
    write(repo, files_of("checkouts/native"))
    return commit(repo, "The release")


def _move(path, place):
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, place)


def edit(repo, name, before, after):
    path = repo / name
    text = path.read_text(encoding="utf-8")
    assert text.count(before) >= 1, f"{before!r} is not in {name}"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
