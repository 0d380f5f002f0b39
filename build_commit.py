"""At build time: the commit goes into the package, since what is installed has no git."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from gpulab.commit import commit_of

        commit = commit_of(Path(self.root))
        # An editable one reads it when it runs; without git it stands in the source distribution.
        if version == "editable" or not commit:
            return
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(commit)
        build_data["force_include"][str(self._file)] = "gpulab/commit.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._file.unlink(missing_ok=True)

    @property
    def _file(self) -> Path:
        return Path(self.directory) / "commit.txt"
