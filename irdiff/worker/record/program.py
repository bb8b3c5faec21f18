"""Runs a user's program, records its launches, and writes them as a corpus, for `irdiff capture`."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shlex
import subprocess
import sys
import traceback

from .. import run_program
from ..capture import inductor, torch_on_cpu
from ..texts import text_of
from . import importable, record, workload_files, written_files

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


def main(words):
    """Returns the program's own exit code if it failed."""
    arguments = _parser().parse_args(words)
    sys.path[:0] = arguments.imports
    sys.path += [arguments.packages] if arguments.packages else []
    # the program may go to another folder
    arguments.out = os.path.abspath(arguments.out)
    arguments.json = arguments.json and os.path.abspath(arguments.json)
    strangers = written_files.strangers(arguments.out, _family(arguments))
    if strangers:  # asked before the program runs
        _say(f"{arguments.out} holds {strangers[0]}: not written by `irdiff capture`, or changed since")
        _say("  next: name another folder with --out; nothing was recorded and nothing was written")
        code = _USAGE
    else:
        code = _record(arguments)
    if arguments.code_file:
        with open(arguments.code_file, "w", encoding="utf-8") as file:
            file.write(str(code))
    return code


def _parser():
    parser = argparse.ArgumentParser(prog="irdiff capture", description=__doc__)
    parser.add_argument("--out", default="irdiff-captured", help="the corpus folder to write")
    parser.add_argument("--target", type=json.loads, default=_DEFAULT_TARGET, help="without a GPU: JSON")
    parser.add_argument("--no-gpu", action="store_true", help="record as if there were no GPU")
    parser.add_argument("--json", help="write what was recorded here")
    parser.add_argument("--repo", help="the repository whose kernels are imported, not copied")
    parser.add_argument("--packages", help="a folder of packages, last on the import path")
    parser.add_argument("--cure", default="install {}", help="what to type where the package {} is missing")
    parser.add_argument("--import", dest="imports", action="append", default=[], help="a folder, first on it")
    parser.add_argument("--code-file", help="write the exit code here: only a recording that ended does")
    parser.add_argument("-m", dest="is_module", action="store_true", help="the program is a module's name")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="script.py and its arguments")
    return parser


def _family(arguments):
    family = workload_files.family_of(os.path.basename(arguments.program[0]))
    # next to a package of its name, a folder of workloads would be imported in the package's place
    repo = arguments.repo
    folders = [repo, os.path.join(repo, "src"), *arguments.imports] if repo else []
    is_package = any(os.path.isdir(os.path.join(folder, family)) for folder in folders)
    return f"{family}_program" if is_package else family


def _record(arguments):
    gpu = None if arguments.no_gpu else _find_gpu()
    name = arguments.target["name"]
    _say(f"recording on {gpu}" if gpu else f"no GPU is used: recording for {name}")
    recorder = record.Recorder(None if gpu else arguments.target)
    with recorder:
        if gpu:
            inductor.record_on_gpu(recorder)
        else:
            torch_on_cpu.install(arguments.target)
            inductor.install(arguments.target, recorder.missed)
        failed, code, lacks = _run(arguments)
    if failed:
        _say(f"the program ended {f'with exit code {code}' if gpu else 'early'}: {failed}")
    if lacks:
        _say(f"  next: {_cure(arguments, lacks)}")
    is_empty = not recorder.launches and not recorder.failures
    if is_empty:
        _say("nothing was recorded" + ("" if failed else "; is it Triton that the program launches?"))
    elif failed and gpu:
        _say("  what it launched before is recorded")
    elif failed and not lacks:
        _say("  without a GPU results are not computed: what checks them fails; what ran is recorded")
    arch = gpu.split()[1] if gpu else ""
    target = (arch if arch.startswith("gfx") else f"sm_{arch}") if gpu else name
    written_launches, skipped, copied = ([], [], []) if is_empty else _write(arguments, recorder, target)
    for kernel, why in copied:
        _say(f"copied, not imported: {kernel}: {why}")
    reported = _report(arguments, recorder.count, written_launches, skipped, failed)
    written = {f"{launch_id.partition(':')[0]}.py" for launch_id, _ in written_launches}
    left = [] if is_empty else written_files.left(arguments.out, _family(arguments), written)
    if left:
        _say(f"left of an earlier recording: {', '.join(left)}")
        paths = (os.path.join(arguments.out, name) for name in left)
        _say(f"  next, if the program launches them no more: {shlex.join(['rm', '--', *paths])}")
    return code or reported


def _write(arguments, recorder, target):
    program = os.path.basename(arguments.program[0])
    repository = importable.Importable(arguments.repo)
    launches, failures = recorder.launches.values(), recorder.failures
    family = _family(arguments)
    return workload_files.write(arguments.out, family, program, launches, failures, repository, target)


def _find_gpu():
    """Asks another process, because this starts torch and the GPU. The program must do that itself, after it
    has set visible devices and allocators and forked children.
    """
    words = [sys.executable, "-c", _FIND_GPU]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
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
        frames = error.__traceback__
        while frames and frames.tb_next and frames.tb_frame.f_code.co_filename in _STARTERS:
            frames = frames.tb_next  # what started the program says nothing to its author
        traceback.print_exception(type(error), error, frames)
        lacks = error.name if isinstance(error, ModuleNotFoundError) else None
        failure = " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(": ")
        return failure, 1, lacks and lacks.partition(".")[0]
    return None, 0, None


def _exit_of(error):
    """Handles `sys.exit(…)` as the interpreter does: a number is the exit code, anything else is printed."""
    if error.code is None:
        return None, 0
    if isinstance(error.code, int):
        code = error.code & 0xFF
        return (f"SystemExit: {error.code}" if code else None), code
    print(error.code, file=sys.stderr)
    return f"SystemExit: {error.code}", 1


def _cure(arguments, lacks):
    """Returns what to type if a module that the program imports is missing."""
    for above, folders, _ in os.walk(arguments.repo) if arguments.repo else ():
        if lacks in folders or os.path.isfile(os.path.join(above, f"{lacks}.py")):
            place = os.path.relpath(above, arguments.repo)
            return f"{lacks} lies in {place} of the repository: put that on PYTHONPATH"
        folders[:] = [name for name in folders if not name.startswith(".")]
    return arguments.cure.replace("{}", lacks)


def _report(arguments, count, written_launches, skipped, failed):
    """Returns the exit code."""
    if count:
        kernels = len({launch_id.split(":")[0] for launch_id, _ in written_launches})
        launched = f"{_counted(count, 'launch', 'launches')}, {len(written_launches)} different"
        _say(f"{launched}, of {_counted(kernels, 'kernel', 'kernels')}, in {arguments.out}")
    for kernel, why in skipped:
        _say(f"not written: {kernel}: {why}")
    if arguments.json:
        _write_json(arguments.json, written_launches, skipped, failed)
    if written_launches and arguments.repo is None:
        _say(f"  next: irdiff compare triton==3.8.0 triton==3.9.0 --corpus {arguments.out}")
    return 0 if written_launches else _NOTHING_RECORDED


def _counted(count, one, many):
    return f"{count} {one if count == 1 else many}"


def _say(text):
    print(f"irdiff: {text}", file=sys.stderr)


def _write_json(path, written_launches, skipped, ended):
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
        for launch_id, recorded in written_launches
    ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"launches": launches, "not_written": skipped, "ended": ended}, file, indent=1)
