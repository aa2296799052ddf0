"""An image that runs without an engine: chroot into its unpacked files, in namespaces of its own, so that it has ports and process 1 to itself."""

import json
import os
import pathlib
import shlex
import signal
import subprocess

from archives import call, wait_for


class Container:
    """`command`: after the entry point, as for `docker run IMAGE COMMAND`; None: the image's own. Folders of `volumes` lie over the image's."""

    def __init__(self, bundle, folder, variables=None, user=None, command=None, read_only=False, volumes=("/conf", "/data", "/datalog", "/logs")):
        config = json.loads((bundle / "image.json").read_text())["config"]
        self.root, self.folder, self.volumes = bundle / "rootfs", folder, {}
        environment = dict(entry.split("=", 1) for entry in config["Env"])
        environment.update(variables or {})
        self.environment = environment
        self.words = [*config["Entrypoint"], *(config["Cmd"] if command is None else command)]
        self.workdir, self.user = config["WorkingDir"], user or config.get("User")
        self.read_only = read_only
        for name in volumes:
            path = folder / name.strip("/").replace("/", "-")
            if not path.exists():
                path.mkdir(parents=True)
                os.chown(path, 1000, 1000)
            self.volumes[name] = path
        self.log = folder / "log"
        self.process = None

    def script(self):
        """What the first process of the namespaces does before it becomes the image's."""
        root = shlex.quote(str(self.root))
        lines = ["set -e", "ip link set lo up", f"mount --rbind {root} {root}"]
        if self.read_only:
            lines.append(f"mount -o remount,ro,bind {root}")
        for name, path in self.volumes.items():
            lines.append(f"mount --bind {shlex.quote(str(path))} {root}{name}")
        # An engine brings this file along.
        hosts = self.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n::1 localhost\n")
        lines.append(f"mount --bind {shlex.quote(str(hosts))} {root}/etc/hosts")
        lines += [f"mount -t proc proc {root}/proc", f"mount -t tmpfs tmpfs {root}/tmp", f"mount --rbind /dev {root}/dev"]
        lines.append("exec " + shlex.join(self.inside(self.words)))
        return "\n".join(lines)

    def inside(self, words):
        user = [f"--userspec={self.user if ':' in str(self.user) else f'{self.user}:{self.user}'}"] if self.user else []
        change = "cd \"$0\" && exec \"$@\"" if (self.root / "bin/sh").exists() else None
        words = ["/bin/sh", "-c", change, self.workdir, *words] if change else words
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", "-i", *variables, "/usr/sbin/chroot", *user, str(self.root), *words]

    def start(self):
        spaces = ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]
        with self.log.open("a") as log:
            self.process = subprocess.Popen([*spaces, "sh", "-c", self.script()], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        # The death of its parent does not end a process that has changed its user since.
        if self.process.poll() is None and (first := self.first()):
            os.kill(first, signal.SIGKILL)
        elif self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)

    def first(self):
        """The process that is number 1 inside."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def run(self, *words, check=True, user=None):
        """A command inside, as `docker exec`."""
        kept, self.user = self.user, user or self.user
        try:
            enter = ["nsenter", f"--target={self.first()}", "--mount", "--pid", "--net", "--ipc", "--uts"]
            return call(*enter, *self.inside(words), timeout=60, check=check)
        finally:
            self.user = kept

    def probe(self, *words):
        """Whether a command inside ends with 0, and what it printed."""
        try:
            return self.run(*words)
        except subprocess.CalledProcessError:
            return None

    def serves(self):
        def asked():
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.log.read_text()[-2000:]}"
            return self.probe("/bin/bash", "-c", "exec 3<>/dev/tcp/localhost/2181 && printf srvr >&3 && grep '^Mode: ' <&3")
        return wait_for(asked)

    def terminate(self):
        """TERM to process 1; returns its exit code."""
        os.kill(self.first(), signal.SIGTERM)
        return self.process.wait(30)

    def owner(self):
        """The user and the program of process 1."""
        number = self.first()
        status = pathlib.Path(f"/proc/{number}/status").read_text()
        uid = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1]
        return int(uid), os.path.basename(os.readlink(f"/proc/{number}/exe"))

    def config(self):
        return (self.volumes["/conf"] / "zoo.cfg").read_text()


def unpack(layout, folder):
    """The image's files by a tool of others, so that the layout is checked too; and its configuration."""
    version = json.loads((layout / "index.json").read_text())["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
    call("umoci", "unpack", "--image", f"{layout}:{version}", folder)
    # An engine makes these, to mount at them.
    for name in ("proc", "tmp", "dev"):
        (folder / "rootfs" / name).mkdir(exist_ok=True)
    (folder / "rootfs/etc/hosts").touch()
    blob = lambda digest: json.loads((layout / "blobs/sha256" / digest.partition(":")[2]).read_text())  # noqa: E731
    manifest = blob(json.loads((layout / "index.json").read_text())["manifests"][0]["digest"])
    (folder / "image.json").write_text(json.dumps(blob(manifest["config"]["digest"])))
    return folder
