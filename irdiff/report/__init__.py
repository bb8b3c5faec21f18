"""Terminal, Markdown, HTML and JSON, all from one `Run`."""
