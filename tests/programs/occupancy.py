"""Occupancy by `irdiff.compare.occupancy` against the driver's own answer.

    python -m tests.programs.occupancy prepare FOLDER     here: binaries and what irdiff says of them
    python tests/programs/occupancy.py check FOLDER       on a GPU host with cuda-bindings; ends with 1 where one differs

Prepared are the sm_90 binaries of every launch of the corpus, and kernels written for the edges of each
limit: registers, static and dynamic shared memory, threads, barriers. The driver is asked by
`cuOccupancyMaxActiveBlocksPerMultiprocessor`.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

TOOLCHAIN = "triton==3.9.0"
TARGET = "sm_90"
PTX = """
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry kernel(.param .u64 out)
.reqntid {threads},1,1
.maxnreg {registers}
{{
  .reg .b64 %rd<3>;
  .reg .b32 %r<{count}>;
  .shared .align 16 .b8 fixed[{static}];
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
{body}
  ret;
}}
"""


def prepare(folder: Path) -> None:
    from irdiff import config
    from irdiff.capture.catalogs import Wanted
    from irdiff.compare import facts
    from irdiff.compile.worker_compiler import WorkerCompiler
    from irdiff.model import Compiled
    from irdiff.parallel import in_parallel
    from irdiff.resolve import corpus, targets, toolchains
    from irdiff.store import Store
    from irdiff.worker_client.worker_requests import Requests
    from irdiff.worker_client.workers import Workers

    settings = config.load()
    toolchain = toolchains.resolve(TOOLCHAIN, settings)
    (target,) = targets.select([TARGET], [settings.shipped / "targets"])
    shipped = corpus.load(settings.shipped / "corpus")
    store = Store(settings.store)
    with closing(Workers(settings)) as workers:
        compiler = WorkerCompiler(Requests(settings, workers), store, Wanted(cases=()), reuse=True)
        catalogs = [compiler.catalog(toolchain, shipped, name, target) for name in shipped.workloads]
        launches = [launch for catalog in catalogs for launch in catalog.launches]

        def compiled(launch):
            return launch, compiler.compile(toolchain, shipped, launch, target)

        outcomes = list(in_parallel(compiled, launches, settings.jobs, "compile", lambda *_: None))
    rows = []
    for launch, outcome in outcomes:
        if isinstance(outcome, Compiled):
            cubin = store.get(outcome.artifacts["cubin"].digest)
            rows.append(_row(folder, launch.id, outcome.metadata["name"], cubin, facts.of_side(
                outcome, {"cubin": cubin}, target)))  # fmt: skip
    rows += edges(folder, toolchain, target)
    (folder / "rows.json").write_text(json.dumps(rows, indent=1))
    print(f"{len(rows)} binaries")


def edges(folder: Path, toolchain, target) -> list[dict]:
    from irdiff import binaries
    from irdiff.compare import occupancy

    ptxas = next(iter(Path(toolchain.path).rglob("ptxas")))
    rows = []
    threads = (32, 96, 128, 224, 256, 384, 512, 1024)
    registers = (24, 32, 40, 48, 64, 72, 96, 128, 168, 255)
    kernels = [(t, r, 16, 0, 1) for t, r in itertools.product(threads, registers)]
    kernels += [(128, 32, static, dynamic, 1) for static in (16, 1008, 9000) for dynamic in (0, 1, 999, 32768, 57344, 100000, 114688, 115712, 231000)]  # fmt: skip
    kernels += [(threads, 24, 16, 0, barriers) for threads in (32, 64) for barriers in (1, 2, 3, 4, 8, 16)]
    for number, (size, most, static, dynamic, barriers) in enumerate(kernels):
        text, cubin = folder / f"edge-{number}.ptx", folder / f"edge-{number}.cubin"
        text.write_text(PTX.format(threads=size, registers=most, count=most * 2 + 2, static=static,
                                   body=_body(most, barriers)))  # fmt: skip
        done = subprocess.run(
            [ptxas, "-arch=sm_90", "-O3", text, "-o", cubin], capture_output=True, text=True
        )
        text.unlink()
        if done.returncode:
            continue  # so many registers are not to be had for so many threads
        content = cubin.read_bytes()
        found = {**binaries.machine_code("cubin", content).facts, "shared_bytes": dynamic}
        row = _row(folder, f"edge-{number}", "kernel", content, {**found, **occupancy.facts(found, target)})
        rows.append({**row, "barriers": barriers})
    return rows


def _body(registers: int, barriers: int) -> str:
    """Loads that are all alive at once, so that about so many registers are needed."""
    count = max(registers - 16, 1)
    lines = [f"  ld.volatile.global.u32 %r{i}, [%rd2+{4 * i}];" for i in range(count)]
    lines += [f"  barrier.sync {i};" for i in range(barriers)]
    lines += ["  st.shared.u32 [fixed], %r0;", "  st.shared.u32 [dynamic], %r0;"]
    lines += [f"  st.volatile.global.u32 [%rd2+{4 * i}], %r{i};" for i in reversed(range(count))]
    return "\n".join(lines)


def _row(folder: Path, name: str, kernel: str, cubin: bytes, found: dict) -> dict:
    path = f"{name.replace('/', '_').replace(':', '_')[:120]}.cubin"
    (folder / path).write_bytes(cubin)
    return {"id": name, "kernel": kernel, "file": path, "facts": found}


def check(folder: Path) -> int:
    from cuda.bindings import driver

    def call(function, *arguments):
        status, *values = function(*arguments)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{function.__name__}: {status}")
        return values[0] if values else None

    call(driver.cuInit, 0)
    device = call(driver.cuDeviceGet, 0)
    call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, device))
    differing = 0
    rows = json.loads((folder / "rows.json").read_text())
    attributes = driver.CUfunction_attribute
    for row in rows:
        facts = row["facts"]
        module = call(driver.cuModuleLoadData, (folder / row["file"]).read_bytes())
        function = call(driver.cuModuleGetFunction, module, row["kernel"].encode())
        dynamic = facts.get("shared_bytes", 0)
        attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        size = facts.get("reqntid", "")
        threads = 1
        for part in size.split(","):
            threads *= int(part)
        try:
            call(driver.cuFuncSetAttribute, function, attribute, dynamic)
            blocks = call(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor, function, threads, dynamic)
        except RuntimeError as error:
            blocks = f"refused: {error}"
        said = facts.get("blocks_per_multiprocessor")
        if blocks != said and not (said == 0 and isinstance(blocks, str)):
            differing += 1
            static = call(driver.cuFuncGetAttribute, attributes.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
            used = {
                k: facts.get(k)
                for k in ("registers", "static_shared_bytes", "shared_bytes", "reqntid", "barriers")
            }
            print(
                row["id"],
                "driver",
                blocks,
                "irdiff",
                said,
                facts.get("occupancy_limit"),
                used,
                "static",
                static,
            )
        call(driver.cuModuleUnload, module)
    print(f"{len(rows)} binaries, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    place = Path(sys.argv[2])
    if sys.argv[1] == "prepare":
        place.mkdir(parents=True, exist_ok=True)
        prepare(place)
    else:
        sys.exit(check(place))
