"""Stands for torch: what a recording touches of Inductor, in the shapes of torch 2.11."""


class Tensor:
    """Triton asks whether its arguments are some."""
