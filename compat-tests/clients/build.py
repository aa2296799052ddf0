"""Builds the client programs, each with the tools of its language, into the target folder, where they are kept.

A missing tool fails the run with the name of the package that has it: a client that is skipped proves nothing.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import threading

import cache
import server as tools

HERE = pathlib.Path(__file__).parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent.parent / "target").resolve() / "clients"
HEADERS = pathlib.Path("/usr/include/zookeeper")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


def once(build):
    """Calls `build` once for each set of arguments: stages run concurrently, and share each program."""
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


def built(name, inputs, build):
    """The folder that `build(path)` made from `inputs`: files, and texts such as flags and the compiler."""
    return cache.filled(cache.named(TARGET, name, inputs), build)


def sources(folder, pattern="*"):
    return sorted(file for file in (HERE / folder).glob(pattern) if file.is_file())


@once
def java(main, version="3.9.5", *also):
    """The command that runs a class of this folder with Java's client of that version."""
    jars, files = tools.jars(version, *also), sources(pathlib.Path(main).parent, "*.java")
    compiler = command("javac", "default-jdk-headless")

    def build(classes):
        call(compiler, "-nowarn", "-cp", jars, "-d", classes, *files)

    classes = built("-".join(["java", version, *also]), [*files, jars, cache.program(compiler)], build)
    return tools.java(QUIET, "-cp", f"{classes}:{jars}", pathlib.Path(main).stem)


@once
def c():
    if not (HEADERS / "zookeeper.h").exists():
        raise RuntimeError("no zookeeper/zookeeper.h here; it comes with libzookeeper-mt-dev")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-DTHREADED"]
    files = [*sources("c"), *sorted(HEADERS.glob("*.h"))]
    compiler = command("gcc", "build-essential")

    def build(path):
        call(compiler, *flags, "-o", path / "work", HERE / "c/work.c", "-lzookeeper_mt", "-lpthread")

    return built("c", [*files, *flags, cache.program(compiler)], build) / "work"


@once
def c_secure():
    """The C client with OpenSSL and cyrus-sasl, which Debian's library lacks: from Debian's source of ZooKeeper, or from that which
    ZOOKEEPER_SOURCE names. Without source it says why, and returns None."""
    try:
        tree = pathlib.Path(os.environ.get("ZOOKEEPER_SOURCE") or cache.debian_source("zookeeper"))
    except (OSError, subprocess.SubprocessError) as error:
        print(f"the C client with TLS and SASL is left out, as the source of Debian's zookeeper can't be had: {error}", flush=True)
        return None
    for header in ("openssl/ssl.h", "sasl/sasl.h"):
        if not pathlib.Path("/usr/include", header).exists():
            raise RuntimeError(f"no {header} here; it comes with libssl-dev libsasl2-dev")
    source, jute = tree / "zookeeper-client/zookeeper-client-c", tree / "zookeeper-jute/src/main/resources/zookeeper.jute"
    names = ["recordio", "zk_log", "zk_hashtable", "zk_sasl", "addrvec", "mt_adaptor", "hashtable/hashtable", "hashtable/hashtable_itr"]
    found = ["ARPA_INET_H", "CYRUS_SASL_H", "FCNTL_H", "GETLOGIN", "GETPWUID_R", "GETUID", "NETDB_H", "NETINET_IN_H", "OPENSSL_H", "POLL", "STRING_H",
             "SYS_SOCKET_H", "SYS_TIME_H", "SYS_UTSNAME_H", "UNISTD_H"]
    flags = ["-O1", "-w", "-Werror=implicit-function-declaration", "-D_GNU_SOURCE", "-DTHREADED", '-DPACKAGE_STRING="3.9.5"',
             *(f"-DHAVE_{name}=1" for name in found)]
    compiler, program = command("gcc", "build-essential"), HERE / "c/secure.c"

    def build(path):
        call(*tools.java("-cp", tools.jars(), "org.apache.jute.compiler.generated.Rcc", "-l", "c", jute), cwd=path)
        (path / "config.h").write_text("")  # Autoconf's; the flags say what is in it.
        call(compiler, *flags, f"-I{path}", f"-I{source}/include", f"-I{source}/src", "-o", path / "work", program,
             *(source / f"src/{name}.c" for name in names), path / "zookeeper.jute.c", "-lssl", "-lcrypto", "-lsasl2", "-lpthread", "-lm")

    return built("c-secure", [program, str(tree), *flags, cache.program(compiler)], build) / "work"


@once
def go():
    compiler = command("go", "golang-go", "/usr/local/go/bin/go")

    def build(path):
        call(compiler, "build", "-o", path / "work", ".", cwd=HERE / "go")

    return built("go", [*sources("go"), cache.program(compiler)], build) / "work"


@once
def node():
    program = command("node", "nodejs")

    def build(path):
        for file in sources("node"):
            shutil.copy(file, path)
        call(command("npm", "npm"), "ci", "--no-audit", "--no-fund", cwd=path)

    return [program, built("node", [*sources("node"), cache.program(program)], build) / "work.js"]


@once
def rust():
    target = TARGET / "rust"  # Cargo itself decides what is stale, and locks against concurrent builds.
    call("cargo", "build", "-q", "--locked", "--manifest-path", HERE / "rust/Cargo.toml", "--target-dir", target)
    return target / "debug/work"
