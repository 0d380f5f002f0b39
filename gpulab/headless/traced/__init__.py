"""From a recorded trace to the text of a scenario: which operations, their calls, the file."""
