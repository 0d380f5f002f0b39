"""Where Python finds a file as a part of a package."""

from __future__ import annotations

from pathlib import Path


def package_of(file: Path) -> tuple[Path, str]:
    """The folder from which a file is imported, and its package, "" where it is in none.

    As pytest finds them: the folder is the first one upward that is no package itself.
    """
    folder = file.absolute().parent
    names: list[str] = []
    while folder.name.isidentifier() and (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(names)


def module_name(file: Path, name: str) -> str:
    """The name of a module in the package of a file, so that it may import relatively."""
    _, package = package_of(file)
    return f"{package}.{name}" if package else name
