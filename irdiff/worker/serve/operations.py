"""The operations of a worker (`catalog`, `compile`, `replay`, `one_pass`), each run in a forked child whose
host has loaded the workload (`prepare`).
"""

from __future__ import annotations

import contextlib
import ctypes
import fnmatch
import gc
import importlib
import json
import os
import re
import signal
import tempfile
import traceback
import types

import triton

from .. import protocol, run_program
from ..capture import absent_variables, describe, intercept, noted, own_folder, stub_driver, workloads
from ..compile import assembling, compiling, outside, passes
from ..texts import sha256
from . import extra_packages


class WorkloadError(Exception):
    """The workload failed by itself, before the compiler was reached."""


_ENDED_EARLY = "ended-early"
"""Suffix, below the label of a program, for the launches that a program that ended early did not reach."""
_prepared = None
"""The result of `_entries` for the workload and target of this process."""
_read: list = []
"""Files that were opened to load and capture them."""
_PROFILE = "profile"
"""The key of a request that names the file for its counters."""


def key_of(request):
    """Requests with the same key need the same workload, loaded for the same target."""
    names = ("root", "workloads", "imports", "target", "select")
    return json.dumps([_workload(request), *(request[name] for name in names)], sort_keys=True)


def prepare(request):
    """Loads the workload for all requests that this process will fork. Returns whether the request is already
    served: describing the launches needs no child.
    """
    global _prepared, _read
    mark()
    own_folder.enter()
    extra_packages.answer_as(request["target"])
    noted.begin_files(request.get("below"), request.get("changed"))
    if request["op"] == "catalog" and not request.get("below"):
        noted.begin_stages(request["folder"])  # one of those that are kept
    try:
        if _has_backend(request["target"]):
            _prepared = _entries(request)
    except BaseException:
        return False  # each request comes to the same error in its own child, which reports it
    finally:
        noted.end_stages()
    _read = noted.end_files()
    if len(os.listdir("/proc/self/task")) > 1:
        # a forked child would lack the threads: it makes its IR again, the same as before
        for captured in _captured_in(_prepared or ()):
            if captured.frontend_input is not None:
                captured.frontend_input.module = None
    served = request["op"] == "catalog"
    if served:
        serve(request)
    gc.freeze()
    return served


forget = own_folder.remove


def serve(request):
    """Returns whether this process is as it was before, so that another launch may be compiled in it."""
    recorder = compiling.StageRecorder(request["folder"])
    recorder.stage = "capture"
    try:
        if not _has_backend(request["target"]):
            recorder.report("unsupported", message=f"no backend {request['target']['backend']!r}")
            return False
        with counted(request):
            return bool(_OPERATIONS[request["op"]](request, recorder))
    except BaseException as error:
        if any(isinstance(cause, MemoryError) for cause in _causes(error)):
            recorder.report("memory", message=f"out of memory at {request['memory_bytes'] >> 20} MiB")
            return False
        traceback.print_exc()
        recorder.report(
            "error",
            message=_one_line(error),
            unsupported=_is_unknown_arch(error),
            transient=_may_be_cured(error),
        )
        return False


def _has_backend(target):
    gpu = stub_driver.gpu_of(target)
    return any(backend.compiler.supports_target(gpu) for backend in triton.backends.backends.values())


def _catalog(request: protocol.CatalogRequest, recorder):
    described, failures, left_out = [], [], {}
    for label, entry, launches in _loaded(request):
        try:
            if isinstance(launches, Exception):
                raise launches
            for suffix, captured in launches.captures:
                launch_id = f"{request['workload']}:{label}{suffix}"
                described.append(describe.describe(captured, launch_id, label, request["target"], entry))
            left_out.update(launches.left_out)
            if launches.ended is not None:
                label = f"{label}/{_ENDED_EARLY}"
                raise launches.ended
        except Exception as error:
            shown = (error.__cause__ if isinstance(error, run_program.EndedEarly) else None) or error
            traceback.print_exception(type(shown), shown, shown.__traceback__)
            failures.append(
                {
                    "id": f"{request['workload']}:{label}",
                    "message": _one_line(error),
                    "transient": _may_be_cured(error),
                    "expected": entry.expects(request["target"]["name"], triton.__version__),
                }
            )
    rest = {"called": noted.called(), "read": _read or noted.end_files(), "caveats": noted.caveats()}
    rest["missing"], rest["uncompared"] = noted.missing(), noted.caveats(is_compared=False)
    rest["absent_variables"] = absent_variables.looked_for()
    recorder.report("captured", launches=described, failures=failures, left_out=left_out, **rest)


def _loaded(request):
    return _entries(request) if _prepared is None else _prepared


def _entries(request):
    """Returns [(label, entry of LAUNCHES, its `intercept.Launches` or the error of capturing them)]."""
    workload, folder = _workload(request), request["workloads"]
    if not workloads.is_for_this_release(request["root"], workload, folder):
        return []
    extra_packages.check()
    with noted.calls() if request.get("note_calls") else contextlib.nullcontext():
        module = workloads.load(request["root"], workload, folder, request["imports"])
        recorded_for, target = getattr(module, "RECORDED_FOR", None), request["target"]["name"]
        if recorded_for not in (None, target):
            noted.add_caveat(f"workloads recorded for {recorded_for} are replayed for {target}")
        entries = [
            (label, entry, _launched(entry, request))
            for label, entry in module.LAUNCHES.items()
            if _is_selected(label, entry, request["select"])
        ]
    _add_what_is_loaded(entries)
    return entries


def _launched(entry, request, again=False):
    """Skips the frontend for launches that do not support the target, because few of them are requested."""
    target = request["target"]
    with_frontend = request["select"]["frontend"] and entry.expects(target["name"], triton.__version__)
    try:
        launches = intercept.launches_of(entry, target, with_frontend, request["select"]["configs"])
    except Exception as error:
        _release(error)
        if again or "can't allocate memory" not in str(error):
            return error
        gc.collect()  # of earlier entries: tensors in cycles, as those of autograd are
        return _launched(entry, request, again=True)
    for _, captured in launches.captures:
        _release(captured.error)
    return launches


def _release(error):
    """Frees the tensors of the functions that an error passed through; it can still be printed."""
    for cause in _causes(error):
        for inner, _ in traceback.walk_tb(cause.__traceback__):
            frame: types.FrameType | None = inner
            while frame is not None:
                with contextlib.suppress(RuntimeError):  # it runs still
                    frame.clear()
                frame = frame.f_back


def _add_what_is_loaded(entries):
    """Adds modules that the workload has loaded from outside to each input digest."""
    try:
        modules = outside.loaded()
    except OSError:
        modules = None
    for captured in _captured_in(entries) if modules != [] else ():
        if (
            captured.digest is not None and captured.frontend_input is not None
        ):  # what is recorded has all of its inputs
            captured.frontend_input.digest = sha256(repr((captured.digest, modules))) if modules else None


def _captured_in(entries):
    for _, _, launches in entries:
        for _, captured in launches.captures if isinstance(launches, intercept.Launches) else ():
            yield captured


def _is_selected(label, entry, select: protocol.SelectionWords):
    own, *heads = (re.split("[/#]", text, maxsplit=1)[0] for text in (label, *select["labels"]))
    return (not select["tiers"] or entry.facts["tier"] in select["tiers"]) and (
        not heads or any(fnmatch.fnmatchcase(own, head) for head in heads)
    )


def _workload(request):
    return request["workload"] if "workload" in request else request["launch"].split(":", 1)[0]


def _captured(request):
    """Restores the settings that the launch was captured under."""
    captured = _named(request)
    if captured.frontend_input is not None:
        captured.frontend_input.settings.restore()
    return captured


def _named(request):
    """Finds the launch by its id, or by its digest if launches of one label come in another order
    each time.
    """
    wanted, digest = request["launch"].split(":", 1)[1], request.get("digest")
    for label, _, launches in _loaded(request):
        if isinstance(launches, Exception):
            if wanted == label or wanted.startswith((label + "/", label + "#")):
                raise launches
            continue
        for suffix, captured in launches.captures:
            if label + suffix == wanted:
                same = (other for _, other in launches.captures if digest and other.digest == digest)
                return next(same, captured)
    raise WorkloadError(f"{request['launch']} was captured before and is not there now")


def _compile(request: protocol.CompileRequest, recorder):
    captured = _captured(request)
    if captured.digest != request["digest"]:
        raise WorkloadError(
            f"{request['launch']} gives another launch each time: the workload depends on something "
            "other than its arguments (time, randomness, the environment)"
        )
    if _PROFILE in request and captured.frontend_input is not None:
        captured.frontend_input.module = (
            None  # made by the host, whose lines are not counted: it is made again here
        )
    with _temporary_files_in(recorder.folder):
        left = compiling.compile_launch(captured, recorder, _remembered(request))
    recorder.report("compiled", from_outside=left.from_outside)
    return left.is_nothing


@contextlib.contextmanager
def _temporary_files_in(folder):
    """The stages' own files, which a process that is killed leaves behind, end with the request's folder."""
    before, tempfile.tempdir = tempfile.tempdir, folder
    try:
        yield
    finally:
        tempfile.tempdir = before


def _remembered(request):
    return assembling.Remembered(request.get("assembled"), request.get("programs", {}))


def _replay(request: protocol.ReplayRequest, recorder):
    captured = _captured(request)
    with _temporary_files_in(recorder.folder):
        settings, left = passes.replay(request, captured, recorder, _remembered(request))
    recorder.report("compiled", settings=settings)
    if not request.get("shared"):
        passes.leave()
    return left.is_nothing


def _one_pass(request: protocol.OnePassRequest, recorder):
    passes.run_alone(request, _captured(request), recorder)


_OPERATIONS: dict = {"catalog": _catalog, "compile": _compile, "replay": _replay, "one_pass": _one_pass}


def _one_line(error):
    text = " ".join(str(error).split())
    if isinstance(error, ImportError):
        places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
        text += "".join([f" ({name}:{line})" for name, line in places if name[0] != "<"][-1:])
    return f"{type(error).__name__}: {text}"[:500]


def _may_be_cured(error):
    """True if the machine may be the cause and not the code: something was missing, the system refused (a
    full disk), memory ran out, or a program was killed from outside.
    """
    return any(
        isinstance(cause, (ImportError, OSError, MemoryError))
        or -getattr(cause, "returncode", 0) in (signal.SIGKILL, signal.SIGTERM)
        for cause in _causes(error)
    )


def _causes(error):
    """The frontend wraps other errors."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_unknown_arch(error):
    """True if the toolchain does not know the architecture, rather than failing on it."""
    text = str(error)
    return "Unsupported target" in text or "unsupported target" in text or "0 compatible backends" in text


def mark():
    """Keeps the counters as they are. Call it right after importing triton.

    A build that counts exports three functions from its library (irdiff links them in). Each request starts
    from the counters kept here, so what runs as the library is loaded counts for every request, and the
    capture of other launches for none.
    """
    library = _library()
    if library is not None:
        library.irdiff_coverage_mark()


@contextlib.contextmanager
def counted(request):
    """Writes the counters of the code that runs while this is open, if the request wants them."""
    if _PROFILE not in request:
        yield
        return
    library = _library()
    if library is None:
        raise RuntimeError("irdiff: this compiler was not built to count the lines that run")
    path = request[_PROFILE].encode()
    library.irdiff_coverage_begin(path)
    try:
        yield
    finally:
        if library.irdiff_coverage_end() != 0:
            raise RuntimeError("irdiff: the counters of the compiler's lines could not be written")


def _library():
    """Returns None if the compiler does not count."""
    try:
        path = importlib.import_module("triton._C.libtriton").__file__
        library = ctypes.CDLL(path)
        return library if hasattr(library, "irdiff_coverage_begin") else None
    except (ImportError, OSError, TypeError):
        return None
