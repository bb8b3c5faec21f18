"""Launches of a tritonparse trace (`*.ndjson`, `*.ndjson.gz`) as a corpus.

A trace has a line of JSON an event: `compilation` (payload: `metadata` with the options and the `hash`,
`python_source.code`) and `launch` (`compilation_metadata.hash`, `grid`, `extracted_args`). The format is
that of https://github.com/meta-pytorch/tritonparse, `structured_logging.py`. Each launch is made once
more, with fakes of its arguments, under a recorder.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import runpy
import tempfile

from . import corpus_api, record, workload_files

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_IMPORTS = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n"


class _Unreadable(Exception):
    """An event lacks what a launch needs."""


def write(path, folder, target):
    """(events, rows, skipped), as `workload_files.write` gives them."""
    compilations, launches = {}, []
    for event in _events(path):
        if event.get("event_type") == "compilation":
            payload = event["payload"]
            compilations[payload["metadata"].get("hash")] = payload
        elif event.get("event_type") == "launch":
            launches.append(event)
    functions: dict = {}
    failed = []
    recorder = record.Recorder(target)
    with recorder, tempfile.TemporaryDirectory() as scratch:
        for event in launches:
            metadata = event.get("compilation_metadata", {})
            name = metadata.get("name", "?")
            try:
                _launch(event, compilations.get(metadata.get("hash")), functions, scratch)
            except Exception as error:
                failed.append((name, f"{type(error).__name__}: {error}"))
    program = os.path.basename(path)
    rows, skipped, _ = workload_files.write(folder, family_of(path), program, recorder.launches.values())
    return len(launches), rows, [*dict.fromkeys(failed), *skipped]


def family_of(path):
    """The folder's name within the corpus."""
    return workload_files.family_of(os.path.basename(path).split(".", 1)[0])


def _events(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _launch(event, compilation, functions, scratch):
    if compilation is None or "python_source" not in compilation:
        raise _Unreadable("the trace has no source of it: its compilation was not traced")
    metadata = compilation["metadata"]
    code = compilation["python_source"]["code"]
    key = (metadata["name"], code)
    if key not in functions:
        functions[key] = _function(metadata["name"], code, scratch, len(functions))
    arguments = {name: _argument(row) for name, row in event["extracted_args"].items()}
    options = {name: metadata[name] for name in _OPTIONS if metadata.get(name) is not None}
    functions[key][tuple(event["grid"])](**arguments, **options)


def _function(name, code, scratch, number):
    """The JIT function of its source alone, without the decorators that chose its configs."""
    found = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.FunctionDef) and n.name == name]
    if not found:
        raise _Unreadable("its source in the trace does not define it")
    lines = code.splitlines()[found[0].lineno - 1 : found[0].end_lineno]
    path = os.path.join(scratch, f"kernel_{number}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_IMPORTS + "@triton.jit\n" + "\n".join(lines) + "\n")
    return runpy.run_path(path)[name]


def _argument(row):
    kind = row.get("type")
    if kind == "tensor":
        return corpus_api.tensor(
            row["shape"], row["dtype"], row.get("stride"), row.get("storage_offset") or 0
        )
    if kind == "TensorDescriptor":
        from triton.tools.tensor_descriptor import TensorDescriptor

        return TensorDescriptor(_argument(row["base"]), row["shape"], row["strides"], row["block_shape"])
    if "value" in row:
        return row["value"]
    if kind == "NoneType":
        return None
    raise _Unreadable(f"an argument of type {kind} was traced without its value")
