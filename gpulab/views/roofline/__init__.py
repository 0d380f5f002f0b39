"""The roofline in a terminal: a plot of letters and lines, and the table of its points."""
