"""Renders one `Run` for the terminal, as Markdown, HTML and JSON."""
