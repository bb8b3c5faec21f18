"""Would the same compiler produce the same code again? Recompiles changed cases to find out."""
