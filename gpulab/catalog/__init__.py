"""The scenario files there are, read as text, and what the machine lacks for them."""
