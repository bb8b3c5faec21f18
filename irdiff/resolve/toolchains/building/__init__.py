"""How a native build is made: what it needs, its progress, its failures, the trees it leaves."""
