
from triton.backends.driver import DriverBase


class TinyDriver(DriverBase):
    is_active = staticmethod(lambda: False)
    map_python_to_cpp_type = get_active_torch_device = get_benchmarker = lambda self, *_: None

    def get_current_target(self):
        raise RuntimeError
