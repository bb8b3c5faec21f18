

import dataclasses as _dataclasses
from concurrent.futures import ThreadPoolExecutor as _Pool

from triton import _instrumentation as _i

OWN, LEVEL = NUMBER, 3
_make_ptx, _make_cubin, _given = CUDABackend.make_ptx, CUDABackend.make_cubin, _i._callbacks


def _ptx(self, src, metadata, opt, capability):
    made = _make_ptx(self, src, metadata, opt, capability)
    self.level = 0 if "renamed" in made else 3
    if opt.num_stages == 5:
        with _Pool(1) as pool:
            return pool.submit(_given["thread", "nvidia"], made).result()
    return _given["ptx", "nvidia"](made) if opt.num_stages == 4 else made


def _cubin(self, src, metadata, opt, capability):
    def at(level):
        changed = _dataclasses.replace(opt, ptx_options=f"--opt-level {level}")
        return _make_cubin(self, src, metadata, changed, capability)

    if opt.num_stages == 6:
        return at(_given["flags", "nvidia"]())
    if opt.num_stages == 9:
        return at(LEVEL)
    if opt.num_stages == 10:
        return at(self.level)
    made = _make_cubin(self, src, metadata, opt, capability)
    if opt.num_stages == 7:
        return _given["cubin", "nvidia"](made, at(0))
    return at(OWN) if opt.num_stages == 8 else made


CUDABackend.make_ptx, CUDABackend.make_cubin = _ptx, _cubin
