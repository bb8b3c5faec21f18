"""Runs a user's program, records its launches, and writes them as a corpus: what `irdiff.capture` starts."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import traceback

from triton.runtime import driver

from . import inductor, record, torch_on_cpu, tritonparse_trace, workload_files
from .texts import text_of

_NOTHING_RECORDED = 4
_DEFAULT_TARGET = {"name": "sm_90", "backend": "cuda", "arch": 90, "warp_size": 32, "facts": {}}


def main(words=None):
    arguments = _parser().parse_args(words)
    if arguments.from_trace:
        return _import_trace(arguments)
    target = _stub_target(arguments)
    print(
        "irdiff: " + (f"no GPU: recording for {target['name']}" if target else "recording"), file=sys.stderr
    )
    recorder = record.Recorder(target)
    with recorder:
        if target is not None:
            torch_on_cpu.install(target)
            inductor.install(target)
        ended = _run(arguments)
    program = os.path.basename(arguments.program[0])
    family = workload_files.family_of(program)
    rows, skipped = workload_files.write(arguments.out, family, program, recorder.launches.values())
    return _report(arguments, recorder.count, rows, skipped, ended)


def _parser():
    parser = argparse.ArgumentParser(prog="irdiff capture", description=__doc__)
    parser.add_argument("--out", default="irdiff-captured", help="the corpus folder to write")
    parser.add_argument("--target", type=json.loads, default=_DEFAULT_TARGET, help="without a GPU: JSON")
    parser.add_argument("--no-gpu", action="store_true", help="record as if there were no GPU")
    parser.add_argument("--json", help="write what was recorded here")
    parser.add_argument("--from-trace", help="a trace of tritonparse instead of a program")
    parser.add_argument("-m", dest="is_module", action="store_true", help="the program is a module's name")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="script.py and its arguments")
    return parser


def _stub_target(arguments):
    """None where there is a GPU that Triton can use."""
    if not arguments.no_gpu:
        try:
            driver.active.get_current_target()
            return None
        except Exception:  # no driver is active, or it does not start
            pass
    return arguments.target


def _run(arguments):
    """Runs the program as `python script.py` would. Returns how it failed, or None."""
    program = arguments.program[0]
    sys.argv[:] = arguments.program
    try:
        if arguments.is_module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
            runpy.run_path(program, run_name="__main__")
    except SystemExit as error:
        return None if error.code in (None, 0) else f"SystemExit: {error.code}"
    except KeyboardInterrupt:
        return "interrupted"
    except Exception as error:
        traceback.print_exc()
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return None


def _import_trace(arguments):
    count, rows, skipped = tritonparse_trace.write(arguments.from_trace, arguments.out, arguments.target)
    return _report(arguments, count, rows, skipped, None)


def _report(arguments, count, rows, skipped, ended):
    def say(text):
        print(f"irdiff: {text}", file=sys.stderr)

    kernels = len({launch_id.split(":")[0] for launch_id, _ in rows})
    say(f"{count} launches, {len(rows)} different ones of {kernels} kernels, in {arguments.out}")
    for kernel, why in skipped:
        say(f"not written: {kernel}: {why}")
    if ended:
        say(f"the program ended early: {ended}")
        if not arguments.from_trace:
            say("  without a GPU results are not computed: what checks them fails; what ran is recorded")
    if arguments.json:
        _write_json(arguments.json, rows, skipped, ended)
    if not rows:
        say("nothing was recorded; is it Triton that the program launches?")
        return _NOTHING_RECORDED
    say(f"  next: irdiff compare triton==3.8.0 triton==3.9.0 --corpus {arguments.out}")
    return 0


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
