"""An installed Triton again, in an environment of its own, with some of its Python files edited."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

AMD_EDIT = {"triton/backends/amd/compiler.py": "\n\n_NOT_IN_ANY_IR = 1\n"}


def make(toolchain, folder, appended, replaced=MappingProxyType({})):
    """The side `python:PATH` of the copy; `appended` says what to add to which files of its site-packages, and
    `replaced` which text of theirs to put another in place of, once.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    ours = next(Path(toolchain.path).glob("lib/python*/site-packages"))
    theirs = next(folder.glob("lib/python*/site-packages"))
    shutil.copytree(ours, theirs, copy_function=_link, dirs_exist_ok=True)
    for name, text in appended.items():
        path = theirs / name
        content = path.read_text()
        path.unlink()  # a link: the toolchain's own file stays as it is
        before, after = replaced.get(name, ("", ""))
        assert before in content, f"{name} has no {before!r}"
        path.write_text(content.replace(before, after, 1) + text)
    return f"python:{folder}/bin/python"


def beside(toolchain, folder):
    """The site-packages of a new environment that finds the toolchain's Triton."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    theirs = next(Path(toolchain.path).glob("lib/python*/site-packages"))
    (site / "triton.pth").write_text(f"{theirs}\n")
    return site


def add_backend(site, name, compiler, driver):
    """A distribution of its own with a backend of Triton."""
    files = {
        f"{name}/__init__.py": "",
        f"{name}/compiler.py": compiler,
        f"{name}/driver.py": driver,
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/entry_points.txt": f"[triton.backends]\n{name} = {name}\n",
    }
    for path, text in files.items():
        (site / path).parent.mkdir(exist_ok=True)
        (site / path).write_text(text)


def _link(source, destination):
    try:
        os.link(source, destination)
    except OSError:
        shutil.copy2(source, destination)
