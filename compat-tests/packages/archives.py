"""What scripts/release makes: the same bytes twice, and a tarball that a link swaps in."""

import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import time

from server import free_port

# A program that is linked statically, if there is one.
STATIC = None
ROOT = pathlib.Path(__file__).resolve().parents[2]


def call(*command, timeout=300, **options):
    """Runs a command and returns what it printed on both streams; an error has that text too."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "timeout": timeout, "check": True, **options}
    return subprocess.run([str(word) for word in command], **options).stdout


def copy_of_sources(folder, mask):
    """The files that Git knows, in another folder, made under another umask."""
    before = os.umask(mask)
    try:
        for name in call("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines():
            source, target = ROOT / name, folder / name
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                target.chmod(0o777 & ~mask if os.access(source, os.X_OK) else 0o666 & ~mask)
    finally:
        os.umask(before)
    return folder


def release(folder, server, mask=0o022, zone="UTC", more=()):
    """The packages of a copy of the sources; made once for all parts that ask with the same folder."""
    out = folder / "out"
    if not (out / "SHA256SUMS").exists():
        sources = copy_of_sources(folder / "sources", mask)
        date = call("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
        environment = {**os.environ, "SOURCE_DATE_EPOCH": date, "TZ": zone}
        environment.pop("CARGO_TARGET_DIR", None)
        programs = ["--binary", server] if server else []
        programs += ["--static", STATIC] if server and STATIC else []
        call(sources / "scripts/release", *programs, *more, out, env=environment, umask=mask, timeout=3600)
    return out


def same_bytes(folder, server):
    one = release(folder / "one", server)
    time.sleep(1.1)  # Another second, should any file keep its time.
    two = release(folder / "a longer name/two", server, mask=0o077, zone="Asia/Tokyo")
    sums = [(out / "SHA256SUMS").read_text() for out in (one, two)]
    assert sums[0] == sums[1], f"different bytes:\n{sums[0]}\n{sums[1]}"
    call("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=one)
    return f"{len(sums[0].splitlines())} packages, the same bytes twice"


def built_twice(folder, _):
    """Both programs from nothing, in two folders."""
    sums = [(release(folder / name, None) / "SHA256SUMS").read_text() for name in ("built", "built at another place")]
    assert sums[0] == sums[1], f"different bytes:\n{sums[0]}\n{sums[1]}"
    return f"{len(sums[0].splitlines())} packages, built twice"


def wait_for(what, seconds=30):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}"
        time.sleep(0.1)
    return found


def manual(folder, server):
    """The page names every command and option that the program's help does."""
    page = (ROOT / "conf/man/oxkeeper.8").read_text().replace("\\-", "-")
    shown = call(server, "--help")
    commands = re.findall(r"(?m)^  ([a-z0-9][a-z0-9-]+)  ", shown)
    options = [name for name in re.findall(r"(?m)^ +(?:-\w, )?(--[a-z-]+)", shown) if name not in ("--help", "--version")]
    assert "bench" in commands and "--log-level" in options, shown
    missing = [name for name in commands + options if name not in page]
    assert not missing, f"oxkeeper.8 does not name {missing}"
    return f"{len(commands)} commands, {len(options)} options"


FOR_SHELLS = ("bash-completion/completions/oxkeeper", "zsh/{}/_oxkeeper", "fish/vendor_completions.d/oxkeeper.fish")


def for_shells(folder, server):
    """Both packages have completions for three shells and a page for each command; bash completes commands, options and files with its own."""
    out = release(folder / "one", server)
    call("tar", "-C", folder, "-xzf", next(path for path in out.glob("*.tar.gz") if "static" not in path.name))
    call("dpkg-deb", "-x", next(out.glob("*.deb")), folder / "deb")
    tarball = next(path for path in folder.glob("oxkeeper-*-linux-*") if path.is_dir() and "static" not in path.name)
    commands = [name for name in re.findall(r"(?m)^  ([a-z0-9][a-z0-9-]+)  ", call(server, "--help")) if name != "help"]
    for share, zsh, packed in ((tarball / "share", "site-functions", ""), (folder / "deb/usr/share", "vendor-completions", ".gz")):
        for name in FOR_SHELLS:
            text = (share / name.format(zsh)).read_text()
            missing = [word for word in (*commands, "chop", "in-flight") if word not in text]
            assert not missing and "generate" not in text, f"{name}: {missing}"
        for page in ("oxkeeper", *(f"oxkeeper-{name}" for name in commands), "oxkeeper-config-check"):
            path = share / f"man/man8/{page}.8{packed}"
            warnings = call("sh", "-c", f"{'zcat' if packed else 'cat'} '{path}' | groff -man -Tutf8 -ww -Wreg -z") if shutil.which("groff") else ""
            assert path.exists() and not warnings, f"{path}: {warnings}"
    ask = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _oxkeeper oxkeeper "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[@]}"'
    for words, wanted in ((["pu"], "purge"), (["bench", "--in-f"], "--in-flight"), (["txn-log", "--rec"], "--recover"), (["config", "ch"], "check")):
        found = call("bash", "-c", f". '{tarball}/share/{FOR_SHELLS[0]}'; {ask}", "_", "oxkeeper", *words).split()
        assert found == [wanted], f"oxkeeper {words} is completed to {found}"
    return f"{len(commands)} commands, in the tarball and in the .deb"


def unpacked_packages(folder, server):
    """Folders with what is in each tarball and in the .deb."""
    out, unpacked = release(folder / "one", server), []
    for package in [*out.glob("*.tar.gz"), *out.glob("*.deb")]:
        to = folder / "unpacked" / package.name
        to.mkdir(parents=True, exist_ok=True)
        call(*(("tar", "-C", to, "-xzf", package) if package.suffix == ".gz" else ("dpkg-deb", "-x", package, to)))
        unpacked.append(to)
    return unpacked


def links(folder, server):
    """Every relative link of a packaged document leads to a packaged file."""
    count, dead, roots = 0, [], unpacked_packages(folder, server)
    for root in roots:
        pages = list(root.rglob("*.md"))
        assert {"operations.md", "CHANGELOG.md", "ARCHITECTURE.md"} <= {page.name for page in pages}, f"{root.name}: {pages}"
        for page in pages:
            text = re.sub(r"(?<!\[)`[^`\n]+`", "", page.read_text())  # Without code that is no text of a link.
            targets = [found for found in re.findall(r"\]\(([^()\s]+)\)", text) if not re.match(r"[a-z]+:|#", found)]
            dead += [f"{root.name}: {page.name} -> {target}" for target in targets if not (page.parent / target.split("#")[0]).exists()]
            count += len(targets)
    assert count > 100 and not dead, f"{count} links, dead: {dead}"
    return f"{count} links in {len(roots)} packages"


def tarball(folder, server):
    """An operator's swap: the link names another folder, the scripts go on with the same zoo.cfg and data."""
    packed = next(release(folder / "one", server).glob("*.tar.gz"))
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="tar")
    unpacked = folder / packed.name.removesuffix(".tar.gz")
    for wanted in ("bin/zkServer.sh", "conf/zoo_sample.cfg", "libexec/bin/java", "docs/operations.md", "docs/third-party.txt", "LICENSE", "NOTICE"):
        assert (unpacked / wanted).exists(), f"no {wanted} in the tarball"
    assert not (unpacked / "conf/zoo.cfg").exists(), "a zoo.cfg in the tarball would hide that the operator's own is missing"
    old = folder / "older-release"
    shutil.copytree(unpacked, old, symlinks=True)
    port, link = free_port(), folder / "zookeeper"
    config = f"dataDir={folder / 'data'}\nclientPort={port}\nadmin.enableServer=false\n4lw.commands.whitelist=*\n"
    environment = {**os.environ, "ZOO_LOG_DIR": str(folder / "logs")}
    for home in (old, unpacked):
        (home / "conf/zoo.cfg").write_text(config)
        link.unlink(missing_ok=True)
        call("ln", "-sfn", home.name, link)
        assert "STARTED" in call(link / "bin/zkServer.sh", "start", env=environment)
        try:
            wait_for(lambda: "Mode: standalone" in call(link / "bin/zkServer.sh", "status", env=environment, check=False))
            pid = (folder / "data/zookeeper_server.pid").read_text()
            assert os.readlink(f"/proc/{pid}/exe") == str(home / "libexec/oxkeeper")
        finally:
            assert "STOPPED" in call(link / "bin/zkServer.sh", "stop", env=environment)
        wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists())
    return "swapped by a link; started, asked and stopped by the scripts"
