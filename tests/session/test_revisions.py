"""A revision is written by its own attributes, whatever the checkout and its `.git` say."""

import hashlib
import subprocess

import pytest

from gpulab.options import UsageError
from gpulab.session.revisions import commit_of, top_level, write_revision

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"


def git(folder, *arguments, source=None):
    own = (
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.com",
        "-c",
        "protocol.file.allow=always",
    )
    command = ["git", *own, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, input=source).stdout.decode()


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def commit(folder, **files):
    for name, data in files.items():
        (folder / name).write_bytes(data)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "files")
    return commit_of(folder, "HEAD")


def script(file, marker):
    file.write_text(f"#!/bin/sh\ntouch {marker}\n")
    file.chmod(0o755)
    return str(file)


def contents(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_nothing_that_the_repository_names_is_run_and_nothing_there_is_written(project, tmp_path):
    marker = tmp_path / "RAN"
    sha = commit(project, step=b"text $Id$\n", weights=b"123")
    for hook in ("post-index-change", "post-checkout", "reference-transaction"):
        script(project / ".git/hooks" / hook, marker)
    git(project, "config", "core.fsmonitor", script(tmp_path / "monitor", marker))
    for kind in ("smudge", "clean", "process"):
        git(project, "config", f"filter.x.{kind}", script(tmp_path / kind, marker))
    (project / ".git/info/attributes").write_text("* filter=x ident\n")
    (project / ".gitattributes").write_text(
        "* filter=x eol=crlf text working-tree-encoding=UTF-16\n"
    )
    before = contents(project)
    write_revision(project, commit_of(project, "HEAD"), tmp_path / "copy")
    assert top_level(project) == project
    assert (tmp_path / "copy/step").read_bytes() == b"text $Id$\n"
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["step", "weights"]
    assert contents(project) == before
    assert not marker.exists()
    assert commit_of(project, sha[:10]) == sha


def test_the_attributes_are_those_of_the_revision(project, tmp_path):
    marker = tmp_path / "RAN"
    git(project, "config", "filter.x.smudge", script(tmp_path / "smudge", marker))
    (project / ".gitattributes").write_text("*.txt text eol=crlf filter=x\n")
    commit(project, **{"a.txt": b"1\n2\n"})
    marker.unlink(missing_ok=True)
    (project / ".gitattributes").write_text("*.txt -text\n")
    write_revision(project, commit_of(project, "HEAD"), tmp_path / "copy")
    assert (tmp_path / "copy/a.txt").read_bytes() == b"1\r\n2\r\n"
    assert not marker.exists()


def test_a_partial_clone_asks_no_remote(project, tmp_path):
    commit(project, step=b"1\n")
    git(project, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    source = f"file://{project}"
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", source, str(clone))
    marker = tmp_path / "RAN"
    git(clone, "config", "remote.origin.uploadpack", script(tmp_path / "upload", marker))
    with pytest.raises(UsageError, match=r"git checkout-index: .*step"):
        write_revision(clone, commit_of(clone, "HEAD"), tmp_path / "copy")
    assert not marker.exists()


def test_links_modes_submodules_and_pointers_are_as_they_were_committed(project, tmp_path):
    (project / "folder").mkdir()
    (project / "link").symlink_to("folder/run")
    (project / "folder/run").write_bytes(b"#!/bin/sh\n")
    (project / "folder/run").chmod(0o755)
    sha = commit(project, plain=b"", weights=POINTER)
    git(project, "update-index", "--add", "--cacheinfo", f"160000,{sha},module")
    git(project, "commit", "-qm", "module")
    copy = tmp_path / "copy"
    assert write_revision(project, commit_of(project, "HEAD"), copy) == 1
    assert (copy / "link").is_symlink()
    assert (copy / "link").read_bytes() == b"#!/bin/sh\n"
    assert (copy / "folder/run").stat().st_mode & 0o111
    assert not (copy / "plain").stat().st_mode & 0o111
    assert (copy / "weights").read_bytes() == POINTER
    assert list((copy / "module").iterdir()) == []


def test_nothing_is_written_beside_the_copy(project, tmp_path):
    blob = git(project, "hash-object", "-w", "--stdin", source=b"1").strip()
    for name in ("..", ".git"):
        inner = git(project, "mktree", source=f"100644 blob {blob}\tfile\n".encode()).strip()
        tree = f"40000 {name}\0".encode() + bytes.fromhex(inner)
        outer = git(
            project, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", source=tree
        )
        sha = git(project, "commit-tree", "-m", "forged", outer.strip()).strip()
        with pytest.raises(UsageError, match=r"git read-tree: .*invalid path"):
            write_revision(project, sha, tmp_path / f"copy{name}")
    assert not (tmp_path / "file").exists()


def test_what_is_no_revision_is_said(project, tmp_path):
    commit(project, step=b"1\n")
    with pytest.raises(UsageError, match="no such revision"):
        commit_of(project, "none")
    with pytest.raises(UsageError, match="not a git repository"):
        commit_of(tmp_path, "HEAD")
