"""What a user keeps for the app, the theme and the keys: whatever lies in their place, it comes
up, and says in one line what cannot be used.
"""

import os

from fuzz.mutations import LINES, NAMES, mutated_bytes
from gpulab.session.run_files import state_folder
from gpulab.tui.bindings import KEYS, keymap_path, read_keymap
from gpulab.tui.themes import THEMES, keep_theme, kept_theme

_VALUES = (
    *('"ctrl+r"', '"f2,x"', '""', '","', '"' + "x" * 5000 + '"', "1", "[1]", "{a = 1}", "nan"),
    *("[" * 3000, "{a=" * 3000, "9" * 6000, "1979-05-27", '"""a\nb"""', r'"\u001b[2J"', "'\x1b'"),
)
_INSTEAD = (
    os.mkfifo,
    os.mkdir,
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to(path),
    lambda path: path.write_bytes(b"#" * 10_000_000),
)


def case(random):
    """(what lies in the place of the theme, and of the keys): bytes, or what makes it."""
    theme = random.choice([theme.name for theme in THEMES]).encode() + b"\n"
    names = [key.id for key in KEYS] + list(NAMES) + ["a" + ".a" * 3000, '"\\u001b[2J"']
    lines = [
        f"{random.choice(names)} = {random.choice(_VALUES)}" for _ in range(random.randrange(6))
    ]
    return _odd(random, theme), _odd(random, "\n".join(lines).encode())


def _odd(random, data):
    kind = random.randrange(10)
    if kind == 0:
        return random.choice(_INSTEAD)
    if kind == 1:
        return random.choice(LINES)
    return mutated_bytes(random, data) if kind < 5 else data


def check(files, folder):
    """Read both, and keep another theme."""
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = str(folder)
    for path, content in zip((state_folder() / "theme", keymap_path()), files, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove(path)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content(path)
    keymap, unusable = read_keymap()
    assert kept_theme() in {theme.name for theme in THEMES}
    assert all(keymap.values())
    assert (unusable or "").isprintable()
    assert len(unusable or "") < 2_000
    keep_theme("dark")
    if (state_folder() / "theme").is_file():
        assert kept_theme() == "dark"


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
