"""How a native build is made: what it needs, its output, and how it counts lines."""
