"""What is worked out for one case on demand: `irdiff explain`."""
