"""Writes recorded launches as a corpus folder: one readable workload file for each kernel, and a README.md.

A file imports the kernel from the recorded program's repository, if it can (`importable.py`); otherwise it
holds the kernel's source (`sources.py`). It ends with `LAUNCHES` (`corpus_api`).
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import keyword
import os
import re

import triton

from .. import corpus_api
from ..capture import describe
from ..texts import names_set_by_wrappers
from . import written_files
from .importable import Importable
from .record import Descriptor, Tensor
from .sources import SourceFile, Unwritable

_LAUNCH_KEYWORDS = frozenset(inspect.signature(corpus_api.launch).parameters)
_WIDTH = 100


class Workload:
    """One file: its namespace, its shared tensors and its launches."""

    def __init__(self, function, importable):
        self.function = function
        self.source = SourceFile(importable)
        self.imports = {"launch"}
        self.shared: dict = {}
        """{text of a tensor: its name}, for tensors whose storage several arguments share."""
        self.recorded_calls: dict = {}
        self.module = importable.module_of(function)
        self.why_copied = importable.why_not(function)
        name = function.fn.__name__
        self.wrapper_names = names_set_by_wrappers(function.fn.__globals__[name]) if self.module else set()
        """Names of the arguments and options that the kernel's own autotuner and heuristics set."""

    def add(self, recorded):
        """Raises Unwritable if an argument or a part of the kernel has no form as source."""
        self.source.bind(self.function.fn.__name__, self.function)  # a copy with the same text comes here too
        words, keywords = self._arguments(recorded)
        clashing = {key: word for key, word in keywords.items() if key in _LAUNCH_KEYWORDS}
        named = [f"{key}={word}" for key, word in keywords.items() if key not in clashing]
        clashing_words = tuple(f"{key}={word}" for key, word in clashing.items())
        # configs of one call are one row: the autotuner tries all of them again
        key = (*words, *named, clashing_words) if self.wrapper_names else (len(self.recorded_calls),)
        call = self.recorded_calls.setdefault(key, _RecordedCall(recorded, [*words, *named], clashing_words))
        values = {**recorded.options, **recorded.arguments}
        chosen = {name: values.get(name) for name in self.wrapper_names}
        chosen = {name: x if isinstance(x, (bool, int, str)) else None for name, x in chosen.items()}
        call.grids.append((chosen, tuple(recorded.grid or (1, 1, 1))))

    def _arguments(self, recorded):
        """Returns run-time arguments by position as far as possible, and the others by keyword."""
        shared = self._shared_names(recorded)
        words, keywords = [], {}
        positional = True
        for parameter in recorded.function.params:
            name = parameter.name
            is_there = name in recorded.arguments and name not in self.wrapper_names
            positional = positional and is_there and not parameter.is_constexpr
            if positional:
                words.append(self._word(recorded.arguments[name], shared))
            elif is_there:
                keywords[name] = self._word(recorded.arguments[name], shared)
        for name, value in recorded.options.items():
            if value is not None and name not in self.wrapper_names:
                keywords[name] = self._word(value, shared)
        return words, keywords

    def _shared_names(self, recorded):
        """Returns {storage and dtype: name} of tensors that share a storage; each is written once, at the
        top.
        """
        tensors = list(describe.tensors(recorded.arguments.values()))
        shared = {}
        for key, group in _grouped(tensors, lambda tensor: (tensor.storage, tensor.dtype)).items():
            if len(group) > 1:
                one_place = len({tensor.place for tensor in group}) == 1
                whole = f'tensor(({max(map(_end, group))},), "{group[0].dtype}")'
                word = self._tensor(group[0]) if one_place else whole
                self.imports.update([] if one_place else ["tensor"])
                name = self.shared.setdefault(word, f"shared_{len(self.shared) + 1}")
                shared[key] = (name, not one_place)
        return shared

    def _word(self, value, shared):
        if isinstance(value, Tensor):
            name, is_view = shared.get((value.storage, value.dtype), (None, False))
            if is_view:
                return f"{name}.as_strided({value.shape}, {value.strides}, {value.offset})"
            return name or self._tensor(value)
        if isinstance(value, Descriptor):
            fields = [f"{key}={self.source.expression(field)}" for key, field in _lists(value.fields).items()]
            name = value.type.__name__
            self.source.bind(name, value.type)
            return f"{name}({self._word(value.base, shared)}, {', '.join(fields)})"
        if isinstance(value, (tuple, list)) and any(True for _ in describe.tensors([value])):
            return "(" + "".join(self._word(item, shared) + ", " for item in value) + ")"
        if hasattr(value, "item") and not hasattr(value, "fn"):  # a number of numpy's or torch's
            value = value.item()
        return self.source.expression(value)

    def _tensor(self, tensor):
        contiguous = tensor.strides == corpus_api.contiguous_strides(tensor.shape)
        if tensor.values is not None and tensor.offset == 0:
            self.imports.add("values")
            shape = f", {tensor.shape}" if len(tensor.shape) != 1 else ""
            return f'values({tensor.values}, "{tensor.dtype}"{shape})'
        self.imports.add("tensor")
        words = [f'{tensor.shape}, "{tensor.dtype}"']
        words += [] if contiguous else [f"strides={tensor.strides}"]
        words += [f"offset={tensor.offset}"] if tensor.offset else []
        words += [f'fill="{tensor.fill}"'] if tensor.fill != "normal" else []
        return f"tensor({', '.join(words)})"

    def text(self, about, target):
        recorded_calls = list(self.recorded_calls.values())
        arguments = (call.recorded.arguments.values() for call in recorded_calls)
        labels = describe.numbered([describe.shape_of_first(values) for values in arguments])
        calls = [self._call(call) for call in recorded_calls]
        self.source.imports["irdiff_corpus"] = f"from irdiff_corpus import {', '.join(sorted(self.imports))}"
        parts = [f'"""{about}"""', ""]
        parts += ["from __future__ import annotations", ""] if self.source.future_annotations else []
        shared = [f"{name} = {word}" for word, name in self.shared.items()]
        launches = [f'RECORDED_FOR = "{target}"'] if target else []
        launches += [*shared, *([""] if shared else []), "LAUNCHES = {"]
        for label, words in zip(labels, calls):
            launches += [f'    "{label}": launch(', *_filled(words), "    ),"]
        parts += [self.source.text("\n".join(launches)), *launches]
        return "\n".join([*parts, "}", ""]), labels

    def _call(self, call):
        kernel = f"{self.function.fn.__name__}[{self._grid(call)}]"
        if call.clashing:
            self.source.imports["functools"] = "import functools"
            kernel = f"functools.partial({kernel}, {', '.join(call.clashing)})"
        return [kernel, *call.words]

    def _grid(self, call):
        """Returns the program's grid, by a config's values if it depends on them."""
        if len({grid for _, grid in call.grids}) == 1:
            return repr(call.grids[0][1])
        self.imports.add("grid_by")
        # a grid is not asked with options
        parameters = {parameter.name for parameter in self.function.params}
        values = {
            name: {chosen[name] for chosen, _ in call.grids}
            for name in sorted(self.wrapper_names & parameters)
        }
        names = tuple(name for name, seen in values.items() if len(seen) > 1)
        table = {tuple(chosen[name] for name in names): grid for chosen, grid in call.grids}
        return f"grid_by({names}, {table})"


class _RecordedCall:
    """A call of LAUNCHES, and its grid under each config."""

    def __init__(self, recorded, words, clashing):
        self.recorded, self.words, self.clashing = recorded, words, clashing
        self.grids: list = []


def write(folder, family, program, launches, failures=(), importable=None, target=None):
    """Returns ([(launch id, Recorded)], [(kernel, why it is not there)], [(kernel, why it was copied)]).

    failures: (kernel, why) of what could not be recorded.
    """
    workloads: list = []
    skipped = list(failures)
    importable = importable or Importable()
    for recorded in launches:
        name = recorded.function.fn.__name__
        try:
            _place(workloads, recorded, importable)
        except Unwritable as error:
            skipped.append((name, str(error)))
    os.makedirs(os.path.join(folder, family), exist_ok=True)
    written_launches: list = []
    files: dict = {}
    for workload in workloads:
        kernel = workload.function.fn.__name__.strip("_") or "kernel"
        name = next(n for n in _numbered(kernel) if f"{family}/{n}.py" not in files)
        text, labels = workload.text(_about(workload, program), target)
        files[f"{family}/{name}.py"] = text
        ids = (f"{family}/{name}:{label}" for label in labels)
        written_launches += zip(ids, (call.recorded for call in workload.recorded_calls.values()))
    sides = "main HEAD" if importable.root else "triton==3.8.0 triton==3.9.0 --corpus THIS_FOLDER"
    files[written_files.README] = _readme(program, sides, written_launches, skipped)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
            file.write(written_files.signed(name, text))
    copied = [(w.function.fn.__name__, w.why_copied) for w in workloads if w.why_copied and importable.root]
    return written_launches, skipped, copied


_IMPORTED = """`{kernel}` of {module}, {recorded}

The kernel is imported: each revision launches its own, with its own autotuner and heuristics. Arguments, grid
and options are those of the recorded call. How the repository comes to them is compared by
`irdiff compare --program`.
"""
_COPIED = """A COPY of `{kernel}`, {recorded}

It could not be imported: {why}.
A change of the kernel in the repository does not reach this file.
"""


def _about(workload, program):
    """Says whether the file launches the repository's kernel or a copy of it."""
    kernel = workload.function.fn.__name__
    recorded = f"recorded by `irdiff capture` from {program} with Triton {triton.__version__}."
    if workload.module:
        return _IMPORTED.format(kernel=kernel, module=workload.module, recorded=recorded)
    if workload.source.importable.root:
        return _COPIED.format(kernel=kernel, recorded=recorded, why=workload.why_copied)
    return f"`{kernel}`, {recorded}"


def _place(workloads, recorded, importable):
    """Puts a launch into the file of its function, or into a new one if both cannot share a namespace."""
    for workload in workloads:
        if workload.function is recorded.function:
            with contextlib.suppress(Unwritable):
                return workload.add(recorded)
    fresh = Workload(recorded.function, importable)
    fresh.add(recorded)
    same = [w for w in workloads if w.source.text() == fresh.source.text()]
    if same:
        return same[0].add(recorded)
    return workloads.append(fresh)


def family_of(program):
    """Returns a folder's name for a program."""
    stem = os.path.splitext(os.path.basename(program))[0]
    name = re.sub(r"\W", "_", stem).strip("_").lower() or "captured"
    return f"{name}_" if keyword.iskeyword(name) or name[0].isdigit() else name


def _readme(program, sides, written_launches, skipped):
    """sides: the arguments of `irdiff compare` for these workloads."""
    lines = [
        f"# Kernels of {program}",
        "",
        f"Recorded by `irdiff capture` with Triton {triton.__version__}. To compare over them:",
        "",
        f"    irdiff compare {sides}",
        "",
        "| launch | kernel | grid | arguments |",
        "|---|---|---|---|",
    ]
    for launch_id, recorded in written_launches:
        signature = ", ".join(f"{name} {ty}" for name, ty in recorded.signature.items() if ty != "constexpr")
        grid = "×".join(map(str, recorded.grid or ()))
        lines.append(f"| `{launch_id}` | `{recorded.function.fn.__name__}` | {grid} | {signature} |")
    if skipped:
        lines += ["", "Not written:", "", *(f"- `{kernel}`: {why}" for kernel, why in skipped)]
    return "\n".join(lines) + "\n"


def _numbered(name):
    return itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))


def _filled(words):
    """Fills as few lines as possible with the arguments of a call; the kernel has a line of its own."""
    lines = [words[0] + ",", ""]
    for word in words[1:]:
        if lines[-1] and len(lines[-1]) + len(word) > _WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word + ","
    return ["        " + line for line in lines if line]


def _end(tensor):
    return tensor.offset + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides) if n) + 1


def _lists(fields):
    numbers = ("shape", "strides", "block_shape")
    return {name: [int(n) for n in value] if name in numbers else value for name, value in fields.items()}


def _grouped(items, key):
    groups: dict = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
