"""Steps under torch's profiler, and what one untimed step asks of torch."""
