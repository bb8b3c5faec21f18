"""GitHub: the comment, checks and statuses. This is trusted code that shows a run which may be hostile."""
