"""Floor 3: the interactive face, a Textual app over the same session, state and views as the headless one."""
