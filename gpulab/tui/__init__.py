"""Floor 5: the interactive face, a Textual app over the same sources, reports and views as the
headless one.
"""
