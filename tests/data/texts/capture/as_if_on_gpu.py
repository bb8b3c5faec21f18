"""`as_if_on_gpu.py [options of capture] PROGRAM`: records with a GPU that is made up.

Its driver has a target, its compiler gives kernels that note their launches in `triton.launched`, and its
clock says that more warps are faster.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

HERE = Path(__file__).parent
WORKER = HERE.parents[3] / "irdiff" / "worker"


class Kernel:
    function = packed_metadata = None

    def __init__(self, src, target=None, options=None, **_):
        self.name, self.warps = src.fn.fn.__name__, options["num_warps"]

    def launch_metadata(self, *_):
        return None

    def run(self, x, y, z, *_):
        triton.launched.append((self.name, self.warps, (x, y, z)))


def benchmark(call, **_):
    call()
    return [1.0 / triton.launched[-1][1]] * 3


spec = importlib.util.spec_from_file_location(
    "irdiff_worker", WORKER / "__init__.py", submodule_search_locations=[str(WORKER)]
)
sys.modules["irdiff_worker"] = importlib.util.module_from_spec(spec)
intercept = importlib.import_module("irdiff_worker.capture.intercept")
stub_driver = importlib.import_module("irdiff_worker.capture.stub_driver")
program = importlib.import_module("irdiff_worker.record.program")

intercept.real_compile = Kernel
program._find_gpu = lambda: "a made-up GPU"
gpu = stub_driver.StubDriver(GPUTarget("cuda", 90, 32), {})
gpu.get_benchmarker = lambda: benchmark
driver.set_active(gpu)
triton.launched = []
sys.path.insert(0, str(HERE / "inductor"))
sys.exit(program.main(sys.argv[1:]))
