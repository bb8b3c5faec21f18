"""The table of evidence: one small kernel package a row, one edit of it, and the verdict that it must get.

The rows lie in `tests/data/evidence/rows/*.toml`. All rows are workloads of one repository, which has three
commits: `base`, `head` with every row's edit, and `other`, where every kernel computes something else.

    [name]                      # the workload is rows/NAME, its package NAME; ROW in any text stands for it
    about = "the edit, in words"
    above = "…"                 # what kernel.py has above its kernel
    parameters = ", SCALE"      # the kernel's further parameters
    value = "x * SCALE"         # what it computes, or `body`, the lines that do
    imports = "…"               # what the workload has above its launching function
    prepare = "…"               # what the launching function does before the launch
    arguments = ", SCALE=2"     # the launch's further arguments
    workload_kernel = "…"       # the import of a kernel that is not that of kernel.py
    workload = "…"              # the whole workload, where all this is not enough
    files."path" = "…"          # further files of the package; /path is meant from the repository's root
    edits = [["path", "old", "new"]]    # /workload.py is the workload
    added."path" = "…"
    removed = ["path"]
    expected = "changed"        # of the workload's cases; a list where it has several, by their ids

A file `*.bc` is written as LLVM IR and kept as bitcode; `-> path` is a symbolic link.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "data" / "evidence" / "rows"
_KERNEL = """\
import triton
import triton.language as tl
{above}

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr{parameters}):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
{body}
    tl.store(out_ptr + offsets, value, mask=mask)
"""
_WORKLOAD = """\
import triton
from irdiff_corpus import empty, launch, tensor
{kernel}
{imports}

def run(x):
    out = empty(x.shape, x.dtype)
{prepare}
    kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256{arguments})
    return out


LAUNCHES = {{"fp32": launch(run, tensor((4096,), "fp32"))}}
"""
_KEYS = {
    "about",
    "above",
    "parameters",
    "value",
    "body",
    "imports",
    "prepare",
    "arguments",
    "workload_kernel",
} | {*("workload", "files", "edits", "added", "removed", "expected")}


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    about: str
    expected: tuple[str, ...]
    """Verdicts of the workload's cases, in the order of their ids."""
    base: Mapping[str, str]
    head: Mapping[str, str]
    """Path in the repository → content."""

    @property
    def workload(self) -> str:
        return f"rows/{self.name}"


def load() -> list[Row]:
    """Every row, in the order of the files and of their tables."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))]
    rows = [_row(name, table) for rows in tables for name, table in rows.items()]
    names = [row.name for row in rows]
    assert len(names) == len(set(names)), "two rows have one name"
    return rows


def _row(name: str, table: Mapping[str, Any]) -> Row:
    assert set(table) <= _KEYS, f"{name}: unknown keys {set(table) - _KEYS}"

    def place(path: str) -> str:
        if path == "/workload.py":
            return f"bench/rows/{name}.py"
        return _named(path[1:], name) if path.startswith("/") else f"src/{name}/{path}"

    files = {
        "__init__.py": "",
        "kernel.py": _kernel(table),
        "/workload.py": _workload(table),
        **table.get("files", {}),
    }
    base = {place(path): _named(text, name) for path, text in files.items()}
    head = dict(base)
    for path, old, new in table.get("edits", []):
        old, new = _named(old, name), _named(new, name)
        assert old in head[place(path)], f"{name}: {old!r} is not in {path}"
        head[place(path)] = head[place(path)].replace(old, new, 1)
    head.update((place(path), _named(text, name)) for path, text in table.get("added", {}).items())
    for path in table.get("removed", []):
        del head[place(path)]
    assert base != head, f"{name}: nothing is edited"
    expected = table["expected"]
    return Row(
        name=name,
        about=table["about"],
        expected=(expected,) if isinstance(expected, str) else tuple(expected),
        base=base,
        head=head,
    )


def _kernel(table: Mapping[str, Any]) -> str:
    body = table.get("body", f"value = {table.get('value', 'x * 2.0')}")
    return _KERNEL.format(
        above=f"\n{table['above'].strip()}\n" if "above" in table else "",
        parameters=table.get("parameters", ""),
        body=textwrap.indent(body.strip(), "    "),
    )


def _workload(table: Mapping[str, Any]) -> str:
    if "workload" in table:
        return str(table["workload"])
    return _WORKLOAD.format(
        kernel=table.get("workload_kernel", "from ROW.kernel import kernel"),
        imports=table.get("imports", "").strip() + "\n",
        prepare=textwrap.indent(table.get("prepare", "").strip(), "    "),
        arguments=table.get("arguments", ""),
    )


def _named(text: str, name: str) -> str:
    return text.replace("ROW", name)


def computing_differently(files: Mapping[str, str]) -> dict[str, str]:
    """The same files, where every kernel computes something else."""
    return {
        path: re.sub(r"\bvalue, mask=", "value + 0.5, mask=", text)
        if path.endswith((".py", ".txt"))
        else text
        for path, text in files.items()
    }
