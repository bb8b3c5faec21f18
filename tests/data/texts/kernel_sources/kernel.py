
import triton

@triton.jit
def k(x):
    """What it is for."""
    return x + 1  # a comment

class Holder:
    def other(self): return 2

def bare(): "nothing but a docstring"
