"""Certificates whose subjects need care: made with openssl, once for each version of this file.

A subject NAME has NAME.key and NAME.pem; all are of one authority, ca.pem. `SUBJECTS` has them as openssl's -subj wants them.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import cache  # noqa: E402
from factory import run  # noqa: E402

SUBJECTS = {
    "usual": "/O=b/CN=a",
    "super": "/O=b/CN=sup,er",
    "comma": "/CN=a,b",
    "comma and blank": "/CN=a, b",
    "marks": '/CN=a"b\\+c;d<e>f\\\\g=h',
    "blanks at the ends": "/CN= a  b ",
    "number sign": "/CN=#a",
    "several values": "/CN=a+OU=b+UID=c",
    "not ASCII": "/CN=jürgen/O=日本",
    "decomposed": "/CN=ju\u0308rgen",
    "other types": "/DC=example/UID=u/serialNumber=1/emailAddress=a@b.example/CN=a",
    "twice": "/CN=a/CN=b/OU=c/OU=c",
}
CONFIG = "[req]\ndistinguished_name = name\nstring_mask = utf8only\n[name]\n"


def file_of(name):
    return name.replace(" ", "-")


def make(folder):
    (folder / "openssl.cnf").write_text(CONFIG)
    new = ["openssl", "req", "-x509", "-config", "openssl.cnf", "-utf8", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "9000"]
    run(*new, "-subj", "/CN=odd-ca", "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", "ca.key", "-out", "ca.pem", within=folder)
    for name, subject in SUBJECTS.items():
        file = file_of(name)
        run(*new, "-subj", subject, "-addext", "basicConstraints=CA:FALSE", "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", f"{file}.key",
            "-out", f"{file}.pem", within=folder)


def folder():
    return cache.filled(cache.named(cache.DOWNLOADS, "odd-names", [pathlib.Path(__file__).resolve()]), make)


if __name__ == "__main__":
    print(folder())
