"""Floor 0: what crosses a process boundary or is written to a file. Names and numbers only, never behaviour."""
