"""The commit is read from git's files, however the checkout was made."""

import subprocess

import pytest

from gpulab.commit import commit_of


def git(folder, *arguments):
    identity = ("-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main")
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # those of a hook that runs tests
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


def test_a_branch_a_packed_one_a_detached_head_and_a_further_worktree(checkout, tmp_path):
    first = git(checkout, "rev-parse", "HEAD")
    assert commit_of(checkout) == first
    git(checkout, "pack-refs", "--all")
    assert commit_of(checkout) == first
    other = tmp_path / "other"
    git(checkout, "worktree", "add", "-q", "-b", "topic/a", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "two")
    assert commit_of(other) == git(other, "rev-parse", "HEAD") != first
    assert commit_of(checkout) == first
    git(other, "checkout", "-q", "--detach", first)
    assert commit_of(other) == first


def test_without_git_it_is_not_known(tmp_path):
    assert commit_of(tmp_path) == ""
