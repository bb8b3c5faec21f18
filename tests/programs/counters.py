"""Profiles the stored binaries of a run on a GPU host, and compares the counted work with what it counts.

    python -m tests.programs.counters pack RUN FOLDER [--side head]   # launches and binaries, without the run
    python -m tests.programs.counters profile FOLDER OUT              # on the GPU host: ncu reads its counters
    python -m tests.programs.counters record OUT RUN FILE.tsv         # the counters of each case, a line each
    python -m tests.programs.counters compare RUN FILE.tsv NVDISASM   # without a GPU

`profile` needs irdiff's modules and torch, numpy, msgpack and cuda-bindings; none of irdiff's other
dependencies. Each launch runs once, on the inputs that `irdiff time` would make. The counters of
`reports/samples/counters-3.9.0-sm_90.tsv` are of an H100 (Nsight Compute 2025.3), 2026-11-27, for the head of
`irdiff compare triton==3.8.0 triton==3.9.0 --target sm_90`; the two whose names begin with `source__` are sums over
the instructions of what ncu's source page says.
"""

import collections
import csv
import dataclasses
import io
import json
import lzma
import re
import subprocess
import sys
import time
from pathlib import Path

METRICS = (
    "smsp__inst_executed", "smsp__thread_inst_executed", "smsp__thread_inst_executed_pred_on", "smsp__inst_issued",
    "smsp__warps_launched",
    *(f"smsp__inst_executed_op_{space}_{op}" for space in ("global", "local", "shared", "generic")
      for op in ("ld", "st", "red", "atom")),
    *(f"smsp__inst_executed_op_{op}" for op in (
        "ldsm", "ldgsts", "branch", "shared_atom_dot_alu", "shared_atom_dot_cas", "shared_atom",
        "ldc", "barrier", "st", "ld", "tma", "global_atom", "global_red", "local", "texture",
        "ldgsts_cache_access", "ldgsts_cache_bypass")),
    *(f"smsp__inst_executed_pipe_{pipe}" for pipe in (
        "alu", "fma", "fmaheavy", "fmalite", "fma_type_fp16", "fp16", "fp64", "lsu", "xu", "adu", "cbu", "uniform", "tex", "tma", "uchlo",
        "tensor", "tensor_op_hmma", "tensor_op_imma", "tensor_op_dmma", "tensor_op_gmma", "cbu_pred_on_any",
        "ipa", "fp64_op_dmma", "tensor_op_hmma_type_hfma2", "alu_pred_on_any", "lsu_pred_on_any", "adu_pred_on_any")),
    "sm__inst_executed_pipe_tensor", "sm__inst_executed_pipe_tensor_op_gmma", "sm__inst_executed_pipe_tensor_op_hmma",
    *(f"l1tex__t_{what}_pipe_lsu_mem_{space}_op_{op}" for what in ("requests", "sectors")
      for space in ("global", "local") for op in ("ld", "st", "red", "atom")),
    *(f"l1tex__t_{what}_pipe_lsu_mem_global_op_ldgsts{kind}" for what in ("requests", "sectors")
      for kind in ("", "_cache_access", "_cache_bypass")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_shared{op}" for op in ("", "_op_ld", "_op_st", "_op_atom", "_op_red")),
    *(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared{op}" for op in ("", "_op_ld", "_op_st", "_op_atom", "_op_red")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_lg{op}" for op in ("", "_cmd_read", "_cmd_write")),
    "l1tex__data_pipe_lsu_wavefronts", "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld",
    "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld", "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st",
    "l1tex__m_xbar2l1tex_read_bytes", "l1tex__m_l1tex2xbar_write_bytes", "lts__t_sectors_srcunit_tex_op_read",
    "lts__t_sectors_srcunit_tex_op_write", "dram__bytes_read", "dram__bytes_write",
    "sm__sass_inst_executed_op_shared_ld",
)  # fmt: skip
PLAIN = ("gpu__time_duration.sum", "launch__registers_per_thread", "launch__grid_size", "launch__block_size")
SOURCE = (
    "inst_executed", "thread_inst_executed", "thread_inst_executed_true", "memory_l1_tag_requests_global",
    "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal",
    "memory_l2_theoretical_sectors_local", "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal",
)  # fmt: skip
_MAX_CONTENT_BYTES = 1 << 18


def pack(run_folder_path: str, out: str, side: str = "head") -> None:
    from irdiff.run import run_folder

    folder, target = Path(run_folder_path), Path(out)
    (target / "binaries").mkdir(parents=True)
    run, rows = run_folder.load(folder), []
    warp_sizes = {row.name: row.warp_size for row in run.targets}
    for case in run.cases:
        digest, artifact = case.launches.of(side), case.artifacts.of(side).get("cubin")
        if digest is None or artifact is None:
            continue
        name = artifact.digest[:24]
        (target / "binaries" / name).write_bytes(run_folder.artifact(folder, artifact.digest))
        launch = dataclasses.asdict(run.launches[digest])
        rows.append({"id": case.id, "binary": name, "launch": launch,
                     "metadata": dict(case.metadata.of(side)), "warp_size": warp_sizes[case.target]})  # fmt: skip
    (target / "launches.json").write_text(json.dumps(rows))
    print(f"{len(rows)} launches, {len(list((target / 'binaries').iterdir()))} binaries")


def packed(folder: Path):
    """(id, launch, binary, metadata, warp size) of each launch."""
    from irdiff.model import Argument, Launch

    for row in json.loads((folder / "launches.json").read_text()):
        fields = row["launch"]
        fields["arguments"] = tuple(Argument(**argument) for argument in fields["arguments"])
        fields["grid"] = fields["grid"] and tuple(fields["grid"])
        binary = (folder / "binaries" / row["binary"]).read_bytes()
        yield row["id"], Launch(**fields), binary, row["metadata"], row["warp_size"]


def launch(folder: str, part: str, log: str) -> None:
    import numpy
    import torch

    from irdiff.backends import launch_plan
    from irdiff.timing import buffers
    from irdiff.timing.open_device import open_device

    index, count = map(int, part.split("/"))
    device, contents = open_device(0), {}
    lines = Path(log).open("a")  # noqa: SIM115 - a crash must not lose what it holds
    for number, (case, captured, binary, metadata, warp_size) in enumerate(packed(Path(folder))):
        if number % count != index:
            continue
        try:
            name = str(metadata.get("name", captured.kernel))
            entry = launch_plan.read_entry(binary, name, "cuda")
            plan = launch_plan.plan(captured, metadata, entry, backend="cuda", warp_size=warp_size)
            inputs = buffers.Inputs(torch, buffers.storages(torch, [captured]), 20)
            for storage in inputs.storages:
                random = str(storage.argument["fill"]).startswith(("randint", "perm"))
                if random and storage.size_bytes <= _MAX_CONTENT_BYTES:
                    contents[f"{case}|{storage.number}"] = inputs.contents[storage.number].cpu().numpy()
            memory = buffers.Buffers(inputs)
            function = device.load(binary, plan)
            block = buffers.parameter_block(device, plan, memory, buffers.scratch(torch, plan))
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            device.launch(function, plan, block, torch.cuda.current_stream().cuda_stream)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            print(case, name, sep="\t", file=lines, flush=True)
            del memory, inputs, function, block
            torch.cuda.empty_cache()
        except Exception as error:
            print(case, f"!{str(error).splitlines()[0]}", sep="\t", file=lines, flush=True)
            if "CUDA" in str(error) or "cuda" in str(error):
                raise
    numpy.savez_compressed(log + ".npz", **contents)


def _exported(report: str, kind: str) -> str:
    pages = [["--page", "raw", "--print-units", "base"]]
    if kind == "source":
        pages = [["--page", "source", *view] for view in (["--print-source", "sass"], ["--view", "sass"], [])]
    for page in pages:
        shown = subprocess.run(["ncu", "--import", report, "--csv", *page], capture_output=True, text=True)
        if shown.returncode == 0 and len(shown.stdout) > 1000:
            return shown.stdout
        print(page, shown.returncode, shown.stdout[:300], shown.stderr[:300])
    return ""


def profile(
    folder: str, out: str, parts: str = "4", limit: str = "540", kinds: str = "counters,source"
) -> None:
    begin, target = time.monotonic(), Path(out)
    words = subprocess.run(
        ["ncu", "--query-metrics", "--chips", "gh100"], capture_output=True, text=True
    ).stdout
    there = set(re.findall(r"^(\w+__\w+)", words, re.MULTILINE))
    (target / "metrics.xz").write_bytes(lzma.compress(words.encode()))
    names = [f"{name}.sum" for name in METRICS if name in there] + list(PLAIN)
    print("not there:", *(name for name in METRICS if name not in there))
    chosen = {"counters": names, "source": list(SOURCE)}
    for kind in kinds.split(","):
        texts, logs = [], []
        for part in range(int(parts)):
            if time.monotonic() - begin > float(limit):
                print("out of time before", kind, part)
                break
            log, report = f"/tmp/{kind}-{part}.log", f"/tmp/{kind}-{part}"
            command = ["ncu", "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off",
                       "--metrics", ",".join(chosen[kind]), "-f", "-o", report,
                       sys.executable, "-m", "tests.programs.counters", "launch", folder, f"{part}/{parts}", log]  # fmt: skip
            left = max(5.0, float(limit) - (time.monotonic() - begin))
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=left)
                print(
                    kind,
                    part,
                    "rc",
                    done.returncode,
                    f"{time.monotonic() - begin:.0f} s",
                    done.stdout[-300:] if done.returncode else "",
                    done.stderr[-600:],
                )
            except subprocess.TimeoutExpired:
                print(kind, part, "timed out")
                continue
            texts.append(_exported(f"{report}.ncu-rep", kind))
            logs.append(Path(log).read_text())
            if kind == "counters":
                (target / f"contents-{part}.npz").write_bytes(Path(log + ".npz").read_bytes())
        (target / f"{kind}.xz").write_bytes(
            lzma.compress(json.dumps({"texts": texts, "logs": logs}).encode(), preset=6)
        )
        print(kind, sum(map(len, texts)), "bytes of text", f"{time.monotonic() - begin:.0f} s")


def record(out: str, run_folder_path: str, file: str) -> None:
    from irdiff.run import run_folder

    run = run_folder.load(Path(run_folder_path))
    binaries = {
        case.id: case.artifacts.of("head")["cubin"].digest for case in run.cases if case.artifacts.of("head")
    }
    found: dict[str, dict[str, int]] = {}
    counters, source = (
        json.loads(lzma.decompress((Path(out) / f"{kind}.xz").read_bytes()))
        for kind in ("counters", "source")
    )
    for text, log in zip(counters["texts"], counters["logs"], strict=True):
        head, _, *rows = csv.reader(io.StringIO(text))
        for case, values in zip(_cases(log), rows, strict=True):
            named = zip(head, values, strict=True)
            found[case] = {
                name: int(float(value.replace(",", "")))
                for name, value in named
                if name.endswith(".sum") and value
            }
    for text, log in zip(source["texts"], source["logs"], strict=True):
        cases, head = iter(_cases(log)), []
        for values in filter(None, csv.reader(io.StringIO(text))):
            if values[0] == "Kernel Name":
                case = next(cases)
            elif values[0] == "Address":
                head = values
            for name, column in _SOURCE.items():
                if values[0].startswith("0x") and column in head:
                    found[case][name] = found[case].get(name, 0) + int(float(values[head.index(column)] or 0))
    kept = ("smsp__", "sm__", "l1tex__t", "l1tex__data", "gpu__", "source__")
    names = sorted(
        {name for row in found.values() for name, value in row.items() if value and name.startswith(kept)}
    )
    lines = ["\t".join(["case", "binary", *names])]
    for case in sorted(found):
        lines.append(
            "\t".join([case, binaries[case][:20], *(str(found[case].get(name, 0)) for name in names)])
        )
    Path(file).write_text("\n".join(lines) + "\n")


_SOURCE = {
    "source__wavefronts_shared": "memory_l1_wavefronts_shared",
    "source__sectors_global": "memory_l2_theoretical_sectors_global",
}


def _cases(log: str) -> list[str]:
    return [line.split("\t")[0] for line in log.splitlines() if not line.split("\t")[1].startswith("!")]


_FIGURES = {
    "instructions": ("instructions", 0.01, ["smsp__inst_executed.sum"]),
    "global requests": (
        "global_requests",
        0.0,
        [f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st", "red", "atom")],
    ),
    "global sectors": (
        "global_sectors",
        0.0,
        [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st", "red", "atom")],
    ),
    "shared wavefronts": ("shared_wavefronts", 0.05, ["source__wavefronts_shared"]),
    "spill sectors": (
        "spill_sectors",
        0.0,
        [f"l1tex__t_sectors_pipe_lsu_mem_local_op_{op}.sum" for op in ("ld", "st")],
    ),
}
"""Name → field of `Work`, tolerance, counters whose sum it is."""


def compare(run_folder_path: str, file: str, nvdisasm: str) -> None:
    """Prints each case whose figures differ, and in how many each figure agrees."""
    from irdiff import work
    from irdiff.run import run_folder

    folder = Path(run_folder_path)
    run = run_folder.load(folder)
    cases = {case.id: case for case in run.cases}
    agree: collections.Counter[str] = collections.Counter()
    within: collections.Counter[str] = collections.Counter()
    seconds, lines = [], list(csv.DictReader(Path(file).read_text().splitlines(), delimiter="\t"))
    readers = work.readers(Path(nvdisasm))
    for line in lines:
        case = cases[line["case"]]
        launch, metadata = run.launches[case.launches.head], case.metadata.head
        artifact = case.artifacts.head["cubin"]
        if not artifact.digest.startswith(line["binary"]):
            print(f"{case.id}: the run has another binary than was profiled")
            continue
        binary = run_folder.artifact(folder, artifact.digest)
        compiled = work.CompiledLaunch(
            launch=launch, metadata=metadata, binary=binary, backend="cuda", arch=90
        )
        begin = time.process_time()
        counted = work.count(compiled, readers)
        seconds.append(time.process_time() - begin)
        if isinstance(counted, work.NotCountedWork):
            print(f"{case.id}: not counted: {counted.reason}")
            continue
        found = counted.work
        words = []
        for figure, (field, tolerance, counters) in _FIGURES.items():
            amount, measured = getattr(found, field), sum(int(line.get(counter) or 0) for counter in counters)
            good = (
                abs(amount.low - measured) <= tolerance * measured
                and abs(amount.high - measured) <= tolerance * measured
            )
            agree[figure] += good
            within[figure] += good or amount.low <= measured <= amount.high
            if not good:
                shown = f"{amount.low:,}" if amount.is_known else f"{amount.low:,} to {amount.high:,}"
                words.append(f"{figure} {shown}, measured {measured:,}")
        if words:
            unknown = found.unknown_global_requests.high + found.unknown_shared_requests.high
            why = [*found.notes, *([f"data decide the addresses of {unknown:,} accesses"] if unknown else [])]
            print(f"{case.id}: {'; '.join(words)} ({'; '.join(why) or 'nothing that was noticed'})")
    for figure in _FIGURES:
        print(f"{figure}: {agree[figure]} of {len(lines)} agree ({agree[figure] / len(lines):.1%}), "
              f"{within[figure]} lie in what was counted")  # fmt: skip
    seconds.sort()
    print(
        f"counting: {sum(seconds):.0f} s of processor time, median {seconds[len(seconds) // 2] * 1e3:.0f} ms a case"
    )


_COMMANDS = {"pack": pack, "profile": profile, "launch": launch, "record": record, "compare": compare}

if __name__ == "__main__":
    _COMMANDS[sys.argv[1]](*sys.argv[2:])
