"""`python -m irdiff`."""

from irdiff.cli import main

main()
