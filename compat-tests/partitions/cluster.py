"""An ensemble whose network can be made to fail, and whose disks can be full."""

import subprocess

from members import Ensemble

DISK_MIB = 256
SETTINGS = [
    "initLimit=20",
    "syncLimit=5",  # 2.5 s: how long a leader may wrongly assume that it has a quorum.
    "snapCount=3000",
    "preAllocSize=512",  # KB: small, so that the log soon needs space on a full disk.
]
# Ignores SIGXFSZ: a write above the file size limit then fails with an error and does not kill the process.
NO_SIGNAL = ["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh"]


class Cluster(Ensemble):
    """`kinds`: a letter for each member. `has_small_disks`: each member's data is on a file system of its own, of DISK_MIB, where that is possible."""

    def __init__(self, kinds, command, network, settings=(), has_small_disks=True):
        self.network, self.same_view = network, network.name == "namespaces"
        self.mounts = has_small_disks and network.private
        super().__init__(kinds, command, [*SETTINGS, *settings])

    def place(self):
        self.network.place(self.members)
        for member in self.members:
            member.before = [*member.before, *NO_SIGNAL]
            data = str(member.folder / "data")
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", data]
            member.mounted = self.mounts and subprocess.run(mount, capture_output=True).returncode == 0
            if member.mounted:
                (member.folder / "data/myid").write_text(f"{member.number}\n")

    def line(self, viewer, other):
        return self.network.line(viewer, other)

    def end_all(self):
        """Ends members and network. Data on tmpfs is first copied to the member's folder, in case the folder is kept."""
        self.kill()
        self.network.close()
        for member in self.members:
            if member.mounted:
                subprocess.run(["cp", "-a", member.folder / "data", member.folder / "kept"], check=False)
                subprocess.run(["umount", member.folder / "data"], check=False)
