"""Which changed files, functions and lines the compared launches ran."""
