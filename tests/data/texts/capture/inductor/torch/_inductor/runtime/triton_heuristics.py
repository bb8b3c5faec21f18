"""A kernel as Inductor has it once another process has compiled it: without its Python function."""

import types

import triton


class GridExpr:
    @staticmethod
    def from_meta(inductor_meta, config):
        return GridExpr()

    def eval_slow(self, meta):
        return (-(-meta["xnumel"] // meta["XBLOCK"]), 1, 1)


class CachingAutotuner:
    def __init__(self, kernel, filename, constants):
        self.fn = kernel
        self.filename = filename
        self.inductor_meta, self.triton_meta = {}, {"constants": constants}
        self.launchers = [self._launcher(128, 4), self._launcher(256, 8)]

    def _launcher(self, block, warps):
        def launcher(in_ptr0, out_ptr0, xnumel, stream):
            out_ptr0.contents = "written"
            triton.launched.append(("inductor", warps, xnumel))

        launcher.config = triton.Config({"XBLOCK": block}, num_warps=warps, num_stages=1)
        return launcher

    def run(self, *args, stream, benchmark_run=False, **kwargs):
        self.launchers = self.launchers[-1:]
        return self.launchers[0](*args, **kwargs, stream=stream)


def compiled_elsewhere(name):
    return types.SimpleNamespace(fn=None, __name__=name)


def heuristic(filename):
    return lambda kernel: CachingAutotuner(kernel, filename, {})
