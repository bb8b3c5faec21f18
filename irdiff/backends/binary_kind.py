"""How the machine code of a backend appears: one concept with three names."""

from __future__ import annotations

from dataclasses import dataclass

from irdiff.model import Component


@dataclass(frozen=True, kw_only=True)
class BinaryKind:
    """The last thing that a backend makes: what a driver loads."""

    artifact: str
    """The stage whose artifact it is."""
    status: str
    """The stage that its machine code is reported under: that of the assembly, or one without artifacts."""
    assembly: str
    """The stage of the text that it is made of."""
    made_by: Component
    """The program that makes it of the assembly."""

    @property
    def is_reported_as_text(self) -> bool:
        """True if the status of the assembly is that of the machine code."""
        return self.status == self.assembly
