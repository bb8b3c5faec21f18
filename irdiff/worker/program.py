"""Runs a user's program, records its launches, and writes them as a corpus: what `irdiff capture` starts."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shlex
import subprocess
import sys
import traceback

from . import (
    importable,
    inductor,
    inductor_on_gpu,
    record,
    run_program,
    torch_on_cpu,
    tritonparse_trace,
    workload_files,
    written_files,
)
from .texts import text_of

_USAGE = 2
_NOTHING_RECORDED = 4
_INTERRUPTED = 130
_DEFAULT_TARGET = {"name": "sm_90", "backend": "cuda", "arch": 90, "warp_size": 32, "facts": {}}
_STARTERS = (__file__, run_program.__file__, "<frozen runpy>", runpy.__file__)

_FIND_GPU = """
import sys
if sys.path[0] == "":  # the program's folder is not where its Triton is
    del sys.path[0]
from triton.runtime import driver
gpu = driver.active.get_current_target()
print(gpu.backend, gpu.arch)
"""


def main(words=None):
    """The exit code: the program's own, where it ran on a GPU and failed."""
    arguments = _parser().parse_args(words)
    sys.path[:0] = arguments.imports
    sys.path += [arguments.packages] if arguments.packages else []
    # the program may go to another folder
    arguments.out = os.path.abspath(arguments.out)
    arguments.json = arguments.json and os.path.abspath(arguments.json)
    if _is_occupied(arguments):
        return _end(arguments, _USAGE)
    if arguments.from_trace:
        return _end(arguments, _import_trace(arguments))
    gpu = None if arguments.no_gpu else _find_gpu()
    target = None if gpu else arguments.target
    _say(f"recording on {gpu}" if gpu else f"no GPU is used: recording for {arguments.target['name']}")
    recorder = record.Recorder(target)
    with recorder:
        if target is None:
            inductor_on_gpu.install(recorder)
        else:
            torch_on_cpu.install(target)
            inductor.install(target)
        failed, code, lacks = _run(arguments)
    if failed:
        _say(f"the program ended {f'with exit code {code}' if gpu else 'early'}: {failed}")
    if lacks:
        _say(f"  next: {_cure(arguments, lacks)}")
    if not recorder.launches and not recorder.failures:
        reported = _nothing_recorded(arguments, failed)
    else:
        if failed and gpu:
            _say("  what it launched before is recorded")
        elif failed and not lacks:
            _say("  without a GPU results are not computed: what checks them fails; what ran is recorded")
        reported = _write(arguments, recorder, failed)
    return _end(arguments, code if gpu and code else reported)


def _write(arguments, recorder, failed):
    """The exit code of a recording that is written."""
    rows, skipped, copied = workload_files.write(
        arguments.out,
        _family(arguments),
        os.path.basename(arguments.program[0]),
        recorder.launches.values(),
        recorder.failures,
        importable.Importable(arguments.repo),
    )
    for kernel, why in copied:
        _say(f"copied, not imported: {kernel}: {why}")
    reported = _report(arguments, recorder.count, rows, skipped, failed)
    _say_what_is_left(arguments, rows)
    return reported


def _say_what_is_left(arguments, rows):
    """Names workloads of an earlier recording that this one did not write, and what removes them."""
    written = {f"{launch_id.partition(':')[0]}.py" for launch_id, _ in rows}
    left = written_files.left(arguments.out, _family(arguments), written)
    if left:
        _say(f"left of an earlier recording: {', '.join(left)}")
        paths = (os.path.join(arguments.out, name) for name in left)
        _say(f"  next, if the program launches them no more: {shlex.join(['rm', '--', *paths])}")


def _parser():
    parser = argparse.ArgumentParser(prog="irdiff capture", description=__doc__)
    parser.add_argument("--out", default="irdiff-captured", help="the corpus folder to write")
    parser.add_argument("--target", type=json.loads, default=_DEFAULT_TARGET, help="without a GPU: JSON")
    parser.add_argument("--no-gpu", action="store_true", help="record as if there were no GPU")
    parser.add_argument("--json", help="write what was recorded here")
    parser.add_argument("--repo", help="the repository whose kernels are imported, not copied")
    parser.add_argument("--packages", help="a folder of packages, last on the import path")
    parser.add_argument("--cure", help="what to type where a package is missing, with {} for its name")
    parser.add_argument("--import", dest="imports", action="append", default=[], help="a folder, first on it")
    parser.add_argument("--code-file", help="write the exit code here: only a recording that ended does")
    parser.add_argument("--from-trace", help="a trace of tritonparse instead of a program")
    parser.add_argument("-m", dest="is_module", action="store_true", help="the program is a module's name")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="script.py and its arguments")
    return parser


def _family(arguments):
    if arguments.from_trace:
        return tritonparse_trace.family_of(arguments.from_trace)
    family = workload_files.family_of(os.path.basename(arguments.program[0]))
    # beside a package of its name, a folder of workloads would be imported in the package's place
    folders = [arguments.repo, *arguments.imports] if arguments.repo else []
    folders += [os.path.join(arguments.repo, "src")] if arguments.repo else []
    is_package = any(os.path.isdir(os.path.join(folder, family)) for folder in folders)
    return f"{family}_program" if is_package else family


def _is_occupied(arguments):
    """Whether the folder holds what is not to be written over; asked before the program runs."""
    found = written_files.strangers(arguments.out, _family(arguments))
    if found:
        _say(f"{arguments.out} holds {found[0]}: not written by `irdiff capture`, or changed since")
        _say("  next: name another folder with --out; nothing was recorded and nothing was written")
    return bool(found)


def _find_gpu():
    """What Triton finds, as text; None where it finds no GPU.

    Asked in another process: to ask starts torch and the GPU, which is for the program to do, after it
    has set what it sets (visible devices, allocators, children that it forks).
    """
    done = subprocess.run(
        [sys.executable, "-c", _FIND_GPU], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 else None


def _run(arguments):
    """Runs the program as `python script.py` would.

    Returns (how it failed or None, its exit code, the top name of a module that it lacked or None).
    """
    name, *words = arguments.program
    start = ["-m", name] if arguments.is_module else [os.path.abspath(name)]
    try:
        run_program.run_as_main(*start, *words)
    except SystemExit as error:
        return (*_exit_of(error), None)
    except KeyboardInterrupt:
        return "interrupted", _INTERRUPTED, None
    except Exception as error:
        traceback.print_exception(type(error), error, _of_program(error.__traceback__))
        lacks = error.name if isinstance(error, ModuleNotFoundError) else None
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(": ")
        return said, 1, lacks and lacks.partition(".")[0]
    return None, 0, None


def _of_program(frames):
    """A traceback without what started the program, which says nothing to its author."""
    while frames.tb_next and frames.tb_frame.f_code.co_filename in _STARTERS:
        frames = frames.tb_next
    return frames


def _exit_of(error):
    """As the interpreter takes `sys.exit(…)`: a number is the exit code, anything else is printed."""
    if error.code is None:
        return None, 0
    if isinstance(error.code, int):
        code = error.code & 0xFF
        return (f"SystemExit: {error.code}" if code else None), code
    print(error.code, file=sys.stderr)
    return f"SystemExit: {error.code}", 1


def _nothing_recorded(arguments, failed):
    """The exit code. No workload is written."""
    _say("nothing was recorded" + ("" if failed else "; is it Triton that the program launches?"))
    if arguments.json:
        _write_json(arguments.json, [], [], failed)
    return _NOTHING_RECORDED


def _cure(arguments, lacks):
    """What to type where the program imports what is not there."""
    for above, folders, _ in os.walk(arguments.repo) if arguments.repo else ():
        if lacks in folders or os.path.isfile(os.path.join(above, f"{lacks}.py")):
            place = os.path.relpath(above, arguments.repo)
            return f"{lacks} lies in {place} of the repository: put that on PYTHONPATH"
        folders[:] = [name for name in folders if not name.startswith(".")]
    return (arguments.cure or "install {}").replace("{}", lacks)


def _import_trace(arguments):
    count, rows, skipped = tritonparse_trace.write(arguments.from_trace, arguments.out, arguments.target)
    return _report(arguments, count, rows, skipped, None)


def _report(arguments, count, rows, skipped, failed):
    kernels = len({launch_id.split(":")[0] for launch_id, _ in rows})
    launched = f"{_counted(count, 'launch', 'launches')}, {len(rows)} different"
    _say(f"{launched}, of {_counted(kernels, 'kernel', 'kernels')}, in {arguments.out}")
    for kernel, why in skipped:
        _say(f"not written: {kernel}: {why}")
    if arguments.json:
        _write_json(arguments.json, rows, skipped, failed)
    if not rows:
        return _NOTHING_RECORDED
    if arguments.repo is None:
        _say(f"  next: irdiff compare triton==3.8.0 triton==3.9.0 --corpus {arguments.out}")
    return 0


def _counted(count, one, many):
    return f"{count} {one if count == 1 else many}"


def _end(arguments, code):
    if arguments.code_file:
        with open(arguments.code_file, "w", encoding="utf-8") as file:
            file.write(str(code))
    return code


def _say(text):
    print(f"irdiff: {text}", file=sys.stderr)


def _write_json(path, rows, skipped, ended):
    launches = [
        {
            "id": launch_id,
            "kernel": recorded.function.fn.__name__,
            "digest": recorded.digest,
            "signature": recorded.signature,
            "constexprs": {name: text_of(value) for name, value in recorded.constexprs.items()},
            "attributes": recorded.attributes,
            "grid": recorded.grid,
        }
        for launch_id, recorded in rows
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"launches": launches, "not_written": skipped, "ended": ended}, file, indent=1)
