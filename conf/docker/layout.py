#!/usr/bin/env python3
"""Makes an image as an OCI layout, byte by byte the same from the same input: layout.py full|static BASE ROOT TO VERSION.

BASE is the tar of a Debian (`-` for none), ROOT the folder of the unpacked tarball of scripts/release, TO the folder to make. The full image has
the contract of ZooKeeper's official one; the static one has the program and a zoo.cfg alone.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
TIME = int(os.environ["SOURCE_DATE_EPOCH"])
USER = 1000
HOME = "oxkeeper"
# What manifests in the field name.
AS = "apache-zookeeper-3.9.5-bin"
FOLDERS = {"ZOO_CONF_DIR": "/conf", "ZOO_DATA_DIR": "/data", "ZOO_DATA_LOG_DIR": "/datalog", "ZOO_LOG_DIR": "/logs"}
DEFAULTS = {"ZOO_TICK_TIME": 2000, "ZOO_INIT_LIMIT": 5, "ZOO_SYNC_LIMIT": 2, "ZOO_AUTOPURGE_PURGEINTERVAL": 0,
            "ZOO_AUTOPURGE_SNAPRETAINCOUNT": 3, "ZOO_MAX_CLIENT_CNXNS": 60, "ZOO_STANDALONE_ENABLED": "true", "ZOO_ADMINSERVER_ENABLED": "true"}
PORTS = (2181, 2888, 3888, 8080)
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Layer:
    """A tar of entries that have no time and no owner but those given here."""

    def __init__(self):
        self.raw = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.raw, mode="w", format=tarfile.GNU_FORMAT)

    def put(self, name, kind, mode, content=b"", target="", owner=0):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.linkname, entry.size = kind, mode, target, len(content)
        entry.mtime, entry.uid, entry.gid = TIME, owner, owner
        self.tar.addfile(entry, io.BytesIO(content))

    def folder(self, name, owner=0):
        self.put(name, tarfile.DIRTYPE, 0o755, owner=owner)

    def file(self, name, content, mode=0o644):
        self.put(name, tarfile.REGTYPE, mode, content)

    def link(self, name, target):
        self.put(name, tarfile.SYMTYPE, 0o777, target=target)

    def tree(self, source, name):
        """A folder and all below it."""
        self.folder(name)
        for path in sorted(source.iterdir()):
            inner = f"{name}/{path.name}"
            if path.is_symlink():
                self.link(inner, os.readlink(path))
            elif path.is_dir():
                self.tree(path, inner)
            else:
                self.file(inner, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)

    def done(self):
        self.tar.close()
        return self.raw.getvalue()


def full_layer(root, base):
    layer = Layer()
    with tarfile.open(base) as debian:
        users = {name: debian.extractfile(f"./etc/{name}").read() for name in ("passwd", "group")}
    layer.file("etc/passwd", users["passwd"] + f"zookeeper:x:{USER}:{USER}::/{HOME}:/bin/bash\n".encode())
    layer.file("etc/group", users["group"] + f"zookeeper:x:{USER}:\n".encode())
    layer.folder(HOME)
    for name in ("bin", "libexec"):
        layer.tree(root / name, f"{HOME}/{name}")
    for name in ("LICENSE", "NOTICE", "docs/third-party.txt"):
        layer.file(f"{HOME}/{pathlib.Path(name).name}", (root / name).read_bytes())
    layer.link(AS, HOME)
    layer.file("docker-entrypoint.sh", (HERE / "docker-entrypoint.sh").read_bytes(), 0o755)
    layer.folder("docker-entrypoint.d")
    for name in FOLDERS.values():
        layer.folder(name[1:], USER)
    layer.file("conf/zoo_sample.cfg", (root / "conf/zoo_sample.cfg").read_bytes())
    return layer.done()


def static_layer(root):
    layer = Layer()
    layer.folder("etc")
    layer.file("etc/passwd", f"root:x:0:0::/:/bin/false\nzookeeper:x:{USER}:{USER}::/data:/bin/false\n".encode())
    layer.file("etc/group", f"root:x:0:\nzookeeper:x:{USER}:\n".encode())
    layer.folder("usr")
    layer.folder("usr/bin")
    layer.file("usr/bin/oxkeeper", (root / "libexec/oxkeeper").read_bytes(), 0o755)
    for name in ("LICENSE", "NOTICE", "docs/third-party.txt"):
        layer.file(pathlib.Path(name).name, (root / name).read_bytes())
    layer.folder("conf", USER)
    layer.file("conf/zoo.cfg", (HERE / "zoo.cfg").read_bytes())
    layer.folder("data", USER)
    return layer.done()


def full_config():
    path = f"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/{HOME}/bin:/{HOME}/libexec/bin"
    variables = {"PATH": path, "JAVA_HOME": f"/{HOME}/libexec", **FOLDERS, **DEFAULTS, "ZOOCFGDIR": FOLDERS["ZOO_CONF_DIR"]}
    return {"Env": [f"{name}={value}" for name, value in variables.items()], "WorkingDir": f"/{HOME}",
            "Entrypoint": ["/docker-entrypoint.sh"], "Cmd": ["zkServer.sh", "start-foreground"],
            "Volumes": {name: {} for key, name in FOLDERS.items() if key != "ZOO_CONF_DIR"}}


def static_config():
    return {"Env": ["PATH=/usr/bin"], "WorkingDir": "/data", "User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/oxkeeper"],
            "Cmd": ["/conf/zoo.cfg"], "Volumes": {"/data": {}}}


class Image:
    """A folder in the layout of OCI's image specification 1.0."""

    def __init__(self, to):
        self.to = to
        shutil.rmtree(to, ignore_errors=True)
        (to / "blobs/sha256").mkdir(parents=True)

    def blob(self, content, kind):
        digest = hashlib.sha256(content).hexdigest()
        (self.to / "blobs/sha256" / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def json(self, value, kind):
        return self.blob(json.dumps(value, indent=1, sort_keys=True).encode(), kind)

    def write(self, layers, config, version):
        at = datetime.datetime.fromtimestamp(TIME, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        blobs = [self.blob(gzip.compress(layer, 6, mtime=0), "layer.v1.tar+gzip") for layer in layers]
        labels = {"org.opencontainers.image.title": "oxkeeper", "org.opencontainers.image.version": version,
                  "org.opencontainers.image.licenses": "Apache-2.0"}
        config = {**config, "ExposedPorts": {f"{port}/tcp": {} for port in PORTS}, "Labels": labels, "StopSignal": "SIGTERM"}
        image = {"created": at, "os": "linux", "architecture": ARCHITECTURES[platform.machine()], "config": config,
                 "history": [{"created": at, "created_by": "scripts/release"} for _ in layers],
                 "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]}}
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": self.json(image, "config.v1+json"), "layers": blobs}
        entry = {**self.json(manifest, "manifest.v1+json"), "annotations": {"org.opencontainers.image.ref.name": version}}
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
        (self.to / "index.json").write_text(json.dumps(index, indent=1, sort_keys=True))
        (self.to / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')


def main():
    kind, base, root, to, version = sys.argv[1:]
    root, image = pathlib.Path(root), Image(pathlib.Path(to))
    if kind == "full":
        image.write([pathlib.Path(base).read_bytes(), full_layer(root, base)], full_config(), version)
    else:
        image.write([static_layer(root)], static_config(), version)


main()
