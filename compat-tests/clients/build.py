"""Builds the client programs, each with the tools of its language, under the target folder.

What is missing fails the run with the name of the package that has it: a client that is not run proves nothing.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import threading

import server as tools

HERE = pathlib.Path(__file__).parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent.parent / "target").resolve() / "clients"
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


def once(build):
    """Stages run side by side, and each program is built once for all of them."""
    cached, lock = functools.cache(build), threading.Lock()

    @functools.wraps(build)
    def locked(*arguments):
        with lock:
            return cached(*arguments)

    return locked


def command(name, package, *places):
    """The path of a program."""
    for place in [name, *places]:
        if found := shutil.which(place):
            return found
    raise RuntimeError(f"no {name} here; it comes with {package}")


def call(*words, **more):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}")


def folder(name):
    path = TARGET / name
    path.mkdir(parents=True, exist_ok=True)
    return path


@once
def java(main, version="3.9.5", *also):
    """The command that runs a class of this folder with Java's client of that version."""
    jars = tools.jars(version, *also)
    classes = folder(f"java-{version}{''.join(also)}")
    call("javac", "-nowarn", "-cp", jars, "-d", classes, *sorted((HERE / main).parent.glob("*.java")))
    return tools.java(QUIET, "-cp", f"{classes}:{jars}", pathlib.Path(main).stem)


@once
def c():
    program = folder("c") / "work"
    if not pathlib.Path("/usr/include/zookeeper/zookeeper.h").exists():
        raise RuntimeError("no zookeeper/zookeeper.h here; it comes with libzookeeper-mt-dev")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-DTHREADED"]
    call("gcc", *flags, "-o", program, HERE / "c/work.c", "-lzookeeper_mt", "-lpthread")
    return program


@once
def go():
    program = folder("go") / "work"
    call(command("go", "golang-go", "/usr/local/go/bin/go"), "build", "-o", program, ".", cwd=HERE / "go")
    return program


@once
def node():
    work = folder("node")
    for file in (HERE / "node").iterdir():
        shutil.copy(file, work)
    installed = work / "node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (HERE / "node/package-lock.json").stat().st_mtime:
        call(command("npm", "npm"), "ci", "--no-audit", "--no-fund", cwd=work)
    return [command("node", "nodejs"), work / "work.js"]


@once
def rust():
    target = folder("rust")
    call("cargo", "build", "-q", "--locked", "--manifest-path", HERE / "rust/Cargo.toml", "--target-dir", target)
    return target / "debug/work"
