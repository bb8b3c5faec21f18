"""No LLVM: texts are compared as they are spelled."""

from irdiff.normalize import Printed


def no_llvm(_):
    return Printed(text=None, why_not="unavailable")
