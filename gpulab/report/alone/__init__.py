"""Each variant by itself, beside what the rounds say of it."""
