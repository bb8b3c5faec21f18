

_add_stages = CUDABackend.add_stages


def _with_another(self, stages, options, *language):
    _add_stages(self, stages, options, *language)
    stages["elf"] = lambda cubin, metadata: cubin + b"SIDE"
    self.binary_ext = "elf"


CUDABackend.add_stages = _with_another
_init = CUDABackend.__init__


def __init__(self, target):
    _init(self, target)
    self.binary_ext = "elf"


CUDABackend.__init__ = __init__
