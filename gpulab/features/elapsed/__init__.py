"""Whether what blocks claim to take is what passed."""
