
import triton


def settings(n):
    """How a kernel is launched."""
    return 4 if n < 4096 else 8


class Gate:
    @staticmethod
    @cached
    def forward(x):
        def inner():
            return x
        return inner
