"""The user's own keys: a file `keys.toml` with lines such as `run = "ctrl+r"`, by the ids of the bindings."""

from __future__ import annotations

from pathlib import Path

from gpulab.session.run_files import config_folder
from gpulab.tui.bindings import KEYS


def keymap_path() -> Path:
    return config_folder() / "keys.toml"


def read_keymap() -> tuple[dict[str, str], str | None]:
    """(keys by the id of their binding, what of the file cannot be used). Without a file there are none."""
    path = keymap_path()
    if not path.is_file():
        return {}, None
    import tomllib

    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        return {}, f"{path.name}: {error.strerror or error}"
    except ValueError as error:  # no TOML, or no UTF-8
        return {}, f"{path.name}: {error}"
    known = {key.id for key in KEYS}
    good = {name: keys for name, keys in entries.items() if name in known and isinstance(keys, str) and keys}
    wrong = [name for name in entries if name not in good]
    if wrong:
        return (
            good,
            f'{path.name}: {", ".join(wrong)}: write lines such as run = "ctrl+r"; ids: {" ".join(sorted(known))}',
        )
    return good, None
