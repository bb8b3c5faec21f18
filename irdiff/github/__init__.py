"""GitHub: the sticky comment, checks and statuses. Trusted code that is given a hostile run to show."""
