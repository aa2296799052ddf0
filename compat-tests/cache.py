"""A cache of folders that are made once and kept: downloads, and programs built from their source.

Each folder is named by a hash of its inputs, so other inputs give another folder. It is filled under a temporary name in the same
parent and renamed when it is complete, so a partly filled folder is never used. Threads and processes may ask concurrently.
"""

import contextlib
import fcntl
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DOWNLOADS = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "oxkeeper"
POM = HERE / "pom.xml"
KAZOO = ("kazoo==2.11.0", "pure-sasl==0.6.2")  # pure-sasl: what kazoo needs for SASL.


@contextlib.contextmanager
def alone(name):
    """Holds a lock file: one thread of one process at a time has it."""
    name.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def program(path):
    """A text that identifies a program, and changes when the program does: path, size and time of change."""
    path = os.path.realpath(path)
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def named(place, name, inputs):
    """The folder's path in `place`; `inputs` are texts, and paths of files."""
    digest = hashlib.sha256()
    for each in inputs:
        content = each.read_bytes() if isinstance(each, pathlib.Path) else each.encode()
        label = each.name if isinstance(each, pathlib.Path) else ""
        digest.update(f"{label} {len(content)}\n".encode() + content)
    return place / f"{name}-{digest.hexdigest()[:12]}"


def filled(folder, fill):
    """The folder, made by `fill(path)` unless it is there."""
    with contextlib.suppress(FileNotFoundError):
        if any(folder.iterdir()):
            return folder
    with alone(folder):
        if folder.is_dir() and any(folder.iterdir()):
            return folder  # Another thread or process filled it meanwhile.
        for abandoned in folder.parent.glob(f"{folder.name}.part-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        # A new name each time: a child of a killed process may still write into its old folder.
        part = pathlib.Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
        try:
            fill(part)
            part.chmod(0o755)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


@functools.cache
def jars(version=None, profile=None):
    """The folder that holds the jars of Java ZooKeeper: pom.xml lists them, and has the version that is taken if none is given.

    Without a version it is the folder that OXKEEPER_JARS names, if it is set: used as is unless empty or missing.
    """
    own = os.environ.get("OXKEEPER_JARS") if version is None else None
    version = version or re.search(r"<zookeeper.version>(.+?)<", POM.read_text())[1]

    def fetch(part):
        words = ["mvn", "-q", "-B", "-U", "-f", POM, f"-Dzookeeper.version={version}", f"-DoutputDirectory={part}"]
        profiles = ["-P", profile] if profile else []
        # Maven's local repository does not support two writers.
        with alone(DOWNLOADS / "maven"):
            subprocess.run([*words, *profiles, "dependency:copy-dependencies"], stdout=sys.stderr, check=True)

    if own:
        return filled(pathlib.Path(own).resolve(), fetch)
    name = "-".join(filter(None, ["zookeeper", version, profile]))
    return filled(named(DOWNLOADS, name, [POM, version, profile or ""]), fetch)


@functools.cache
def debian_source(package):
    """The source of a package of Debian, with Debian's patches. No root is needed: apt gets folders of its own, and the package sources of this machine."""
    release = pathlib.Path("/etc/debian_version").read_text()

    def apt(folder, *words):
        own = {"Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "/dev/null", "Dir::State::lists": folder / "lists",
               "Dir::Cache": folder / "cache", "APT::Sandbox::User": "root"}
        options = [word for name, place in own.items() for word in ("-o", f"{name}={place}")]
        subprocess.run(["apt-get", "-q", *options, *words], cwd=folder, stdout=sys.stderr, check=True)

    def fetch(part):
        listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages",
                               "Origin: Debian"], capture_output=True, text=True, check=True).stdout
        lines = sorted(set(listed.splitlines()))
        if not lines:
            raise FileNotFoundError("apt has no lists of Debian's packages")
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            (scratch / "lists").mkdir()
            (scratch / "sources.list").write_text("".join(f"deb-src {line}\n" for line in lines))
            apt(scratch, "update")
            apt(scratch, "source", package)
            for tree in scratch.glob(f"{package}-*/"):
                shutil.move(tree, part / "tree")

    return filled(named(DOWNLOADS, f"source-{package}", [package, release]), fetch) / "tree"


@functools.cache
def venv_python():
    """A Python that has kazoo."""

    def install(part):
        subprocess.run([sys.executable, "-m", "venv", part], check=True)
        pip = [part / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *KAZOO], check=True)

    folder = filled(named(DOWNLOADS, "venv", [*KAZOO, sys.version, sys.base_prefix]), install)
    return str(folder / "bin/python")
