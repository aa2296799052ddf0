"""Writes the first inputs of each target, from the golden bytes that Java made: seeds.py DIR."""

import pathlib
import re
import struct
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "compat-tests" / "golden"
DATA = GOLDEN / "java-data" / "version-2"
LOG_HEADER = 16
SNAPSHOT_HEADER = 16


def records():
    """Each golden record behind the number of its codec, in the order of `records!` in jute's tests."""
    codecs = (ROOT / "jute/tests/codecs/lib.rs").read_text().split("\nrecords! {")[1]
    names = [name.lower() for name in re.findall(r"^    \w+ (\w+)", codecs, re.MULTILINE)]
    for line in (GOLDEN / "records.txt").read_text().splitlines():
        name, *fields = line.split(" ")
        values = [field for field in fields if re.fullmatch(r"(?:[0-9a-f]{2})+", field)]
        if name.lower() in names and values:
            yield bytes([names.index(name.lower())]) + bytes.fromhex(values[0])


def entries(log):
    """The entries of a log file, without their seals."""
    at = LOG_HEADER
    while at + 12 <= len(log):
        (size,) = struct.unpack_from(">i", log, at + 8)
        if size <= 0:
            return
        yield log[at + 12 : at + 12 + size]
        at += 12 + size + 1


def sealed(log):
    """As the target `log` takes them: each behind a byte that is its length."""
    short = [entry for entry in entries(log) if len(entry) < 256]
    return b"\1" + b"".join(bytes([len(entry)]) + entry for entry in short)


def moves():
    """Bodies of requests by kind, as the target `frames` takes them."""
    kinds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 100, 101, 102, 103, 104, 105, 106, 107]
    path = struct.pack(">i", 2) + b"/a"
    data = struct.pack(">i", 1) + b"x"
    acl = struct.pack(">ii", 1, 31) + struct.pack(">i", 5) + b"world" + struct.pack(">i", 6) + b"anyone"
    create = path + data + acl + struct.pack(">i", 0)
    part = struct.pack(">ibi", 1, 0, -1) + create
    bodies = {
        1: create, 2: path + struct.pack(">i", -1), 3: path + b"\1", 4: path + b"\1", 5: path + data + struct.pack(">i", -1),
        6: path, 7: path + acl + struct.pack(">i", -1), 8: path + b"\1", 9: path, 12: path + b"\1",
        14: part + struct.pack(">ibi", -1, 1, -1), 15: create, 18: path + struct.pack(">i", 3), 19: path + data + acl + struct.pack(">i", 4),
        21: path + data + acl + struct.pack(">iq", 5, 1000), 22: struct.pack(">ibi", 4, 0, -1) + path + b"\0" + struct.pack(">ibi", -1, 1, -1),
        100: struct.pack(">i", 0) + struct.pack(">i", 6) + b"digest" + struct.pack(">i", 3) + b"a:b", 101: struct.pack(">q", 0) + (struct.pack(">i", 1) + path) * 3,
        103: path, 104: path, 105: struct.pack(">q", 0) + (struct.pack(">i", 1) + path) * 5, 106: path + struct.pack(">i", 1), 107: b"",
    }
    for kind, body in bodies.items():
        yield bytes([0, kinds.index(kind), len(body)]) + body


def said(path):
    """What the dialer and the other side said on a captured connection."""
    sides, speaker = {">": "", "<": ""}, ">"
    for line in path.read_text().splitlines():
        speaker = line[0] if line[0] in sides else speaker
        sides[speaker] += line[1:]
    return (bytes.fromhex(digits) for digits in sides.values())


def seeds():
    """(target, input) pairs."""
    for record in records():
        yield "jute", record
    all_moves = list(moves())
    for move in all_moves:
        yield "frames", move
    for move in all_moves[1:]:
        yield "frames", all_moves[0] + move + move + b"\x07\1" + move
    for log in DATA.glob("log.*"):
        written = log.read_bytes().rstrip(b"\0") + b"\0"
        yield "log", b"\0" + written
        yield "log", sealed(written)
    for snapshot in DATA.glob("snapshot.*"):
        whole = snapshot.read_bytes()
        yield "snapshot", b"\0" + whole
        yield "snapshot", b"\1" + whole[SNAPSHOT_HEADER:]
    for cases in (GOLDEN / "config", GOLDEN / "properties"):
        for case in (cases / "cases.txt").read_text().splitlines():
            yield "config", urllib.parse.unquote_to_bytes(case)
    yield "config", (ROOT / "conf" / "zoo.cfg").read_bytes()
    yield "config", b"dataDir=/d\nclientPort=2181\n--\n-Dzookeeper.snapCount=5\n"
    yield "config", b"++\n2181\n/d\n2000\n60\n"
    for word in b"conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat stmk wchc wchp wchs".split():
        yield "words", word
    for capture in (GOLDEN / "quorum").glob("*.hex"):
        learner, leader = said(capture)
        yield "peers", b"\0" + leader
        yield "peers", b"\1" + learner
    for capture in (GOLDEN / "election").glob("*.hex"):
        yield "peers", b"\2" + next(said(capture))
    yield "words", struct.pack(">iiqiq", 45, 0, 0, 10_000, 0) + struct.pack(">i", 16) + bytes(17)
    yield "words", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    yield "words", bytes.fromhex("16030100a5010000a10303")


def main():
    into = pathlib.Path(sys.argv[1])
    for number, (target, content) in enumerate(seeds()):
        folder = into / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:04}").write_bytes(content)


if __name__ == "__main__":
    main()
