"""Floor 0: the vocabulary and the pure logic. Imports the standard library and msgspec only."""
