"""Writes the seed corpus of each target, from the golden bytes that Java made: seeds.py DIR."""

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
    """Each golden record after the number of its codec, in the order of `records!` in jute's tests."""
    codecs = (ROOT / "jute/tests/codecs/lib.rs").read_text().split("\nrecords! {")[1]
    names = [name.lower() for name in re.findall(r"^    \w+ (\w+)", codecs, re.MULTILINE)]
    for line in (GOLDEN / "records.txt").read_text().splitlines():
        name, *fields = line.split(" ")
        values = [field for field in fields if re.fullmatch(r"(?:[0-9a-f]{2})+", field)]
        if name.lower() in names and values:
            yield bytes([names.index(name.lower())]) + bytes.fromhex(values[0])


def entries(log):
    """The entries of a log file, without their checksums, lengths and end bytes."""
    at = LOG_HEADER
    while at + 12 <= len(log):
        (size,) = struct.unpack_from(">i", log, at + 8)
        if size <= 0:
            return
        yield log[at + 12 : at + 12 + size]
        at += 12 + size + 1


def sealed(log):
    """Entries as the target `log` takes them: each after a byte that is its length."""
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


def said_in(path):
    """What the dialing end and the accepting end sent on a captured connection."""
    sides, speaker = {">": "", "<": ""}, ">"
    for line in path.read_text().splitlines():
        speaker = line[0] if line[0] in sides else speaker
        sides[speaker] += line[1:]
    return (bytes.fromhex(digits) for digits in sides.values())


def phases():
    """The phases that the target `peers` chooses from, in their order."""
    listed = (ROOT / "tests/support/phases.rs").read_text().split("pub const ALL: ")[1].split("];")[0]
    return re.findall(r"Self::(\w+)", listed)


def peers():
    """For each phase: nothing more, what peers send there, all that a captured connection brought, and a tree to its end."""
    plain, with_configs = 0, 3
    # As `one_move` of tests/support/peer_bytes.rs reads them: 16 times the connection's place, and the kind of move.
    said, report_all, tick, connect, end, elect, snapshot = 5, 10, 11, 12, 13, 14, 15
    last, following, of_epoch = 1, 3, 2
    propose, propose_and_commit, commit, inform, activate, new_leader, ack = 0, 1, 2, 3, 5, 6, 10
    writes = [(propose, following), (ack, last), (commit, last), (propose_and_commit, following), (inform, following)]
    whole = [(new_leader, last), (ack, of_epoch), (ack, of_epoch), *writes, (ack, 8 + 4)]
    for phase in range(len(phases())):
        yield bytes([phase, plain, 0])
        yield bytes([phase, plain, 3])
        for connection in range(2):
            moves = b"".join(bytes([16 * connection + said, what, zxid, report_all]) for what, zxid in whole)
            yield bytes([phase, plain, 0]) + moves + bytes([tick, report_all, 16 * 4 + tick, report_all])
        # Reconfigurations, which are committed.
        for view in (10, 11, 12, 13):
            reconfig = bytes([said, 16 * view + propose_and_commit, following, report_all, said, activate, last, report_all])
            yield bytes([phase, with_configs, 0]) + reconfig + reconfig
        # A packet of each type.
        for kind in range(20):
            yield bytes([phase, plain, 0, 0, kind, 8 * 4 + 3, 12]) + bytes(11) + bytes([3, report_all])
        request = struct.pack(">qii", 0x0300000000000001, 2, 5) + struct.pack(">i", 2) + b"/0" + struct.pack(">i", 1) + b"z" + struct.pack(">i", -1)
        yield bytes([phase, plain, 0, 0, 0, last, len(request)]) + request + bytes([report_all, said, ack, last])
        # The connections end, and another leader is elected; one more learner connects.
        for leader in (1, 2, 3):
            yield bytes([phase, plain, 0, end, end, 16 * leader + elect, report_all, tick, report_all, connect, said, 16 * 2 + 12, of_epoch, report_all, snapshot, report_all])
    # The second half of the tree whose first half phases with SNAP begin with.
    tree = tree_stream(4)
    rest = tree[len(tree) // 2 :] + b"\0\0\0\x0aBenWasHere"
    for phase in range(len(phases())):
        yield bytes([phase, 0x80, 0]) + rest + packet(10, 2 << 32, b"") + packet(12, -1, b"")
    for capture in (GOLDEN / "quorum").glob("*.hex"):
        learner, leader = said_in(capture)
        # To a follower that has dialed its leader, and to a leader without a quorum.
        yield bytes([phases().index("FollowerAwaitsLeaderInfo"), 0x80, 0]) + leader
        yield bytes([phases().index("LeaderAwaitsEpochs"), 0x80, 0]) + learner


def packet(kind, zxid, data):
    return struct.pack(">iqi", kind, zxid, len(data)) + data + struct.pack(">i", -1)


def tree_stream(znodes):
    """The same as `tree_stream` of tests/support/trees.rs."""
    nodes = [("", b"")] + [(f"/{number}", b"\7" * 100) for number in range(znodes)]
    parts = [struct.pack(">i", len(path)) + path.encode() + struct.pack(">i", len(data)) + data + b"\xff" * 8 + bytes(60) for path, data in nodes]
    return bytes(8) + b"".join(parts) + b"\0\0\0\x01/"


def hellos():
    """For each SASL exchange and phase: the hello of a learner, of an observer and of a server that dials the election port."""
    info = struct.pack(">qiq", 2, 0x10000, 0)
    quorum = [packet(kind, 1 << 32, info) for kind in (11, 16)]
    sasl = bytes.fromhex("5f2435013501edcc 00000000 00000000")
    # As `one_move` of tests/support/hello_bytes.rs reads them.
    learner_bytes, learner_exchange, connect, exchange, hello, caller_bytes, message, accept, late = 0, 4, 6, 7, 8, 9, 10, 12, 16 * 4 + 13
    calls = [next(said_in(capture)) for capture in (GOLDEN / "election").glob("*.hex")]
    short = [call for call in calls if len(call) < 256]
    for opened in (0, 1, 2):
        for phase in range(5):
            start = bytes([opened, phase, 0])
            yield start
            for said in [*quorum, b"ruok", b"GET / HTTP/1.1", b"\x16\x03\x01", b"\xff\xff\xff\xff", b"hello?learner", sasl]:
                yield start + bytes([learner_exchange, learner_bytes, len(said)]) + said + bytes([15])
                yield start + bytes([learner_bytes, len(said)]) + said + bytes([late, connect, learner_exchange, learner_bytes, len(said) // 2]) + said
            for call in short:
                yield start + bytes([caller_bytes, len(call)]) + call + bytes([exchange, 15])
            host = b"there"
            vote = struct.pack(">iqqqqii", 0, 2, 0, 1, 1, 2, 0)
            for number in range(8):
                said = bytes([hello, number, len(host)]) + host
                yield start + said + bytes([exchange, message, len(vote)]) + vote + bytes([15, accept]) + said + bytes([exchange, late])


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
        for tool in range(3):
            for options in (0, 1, 2, 8, 16, 24):
                yield "toolkits", bytes([2 * tool, options]) + written
                yield "toolkits", bytes([2 * tool + 1, options]) + sealed(written)[1:]
    for snapshot in DATA.glob("snapshot.*"):
        whole = snapshot.read_bytes()
        yield "snapshot", b"\0" + whole
        yield "snapshot", b"\1" + whole[SNAPSHOT_HEADER:]
        for tool in range(3, 6):
            for options in (0, 1, 2, 4, 8, 64, 130):
                yield "toolkits", bytes([2 * tool, options]) + whole
                yield "toolkits", bytes([2 * tool + 1, options]) + whole[SNAPSHOT_HEADER:]
    for cases in (GOLDEN / "config", GOLDEN / "properties"):
        for case in (cases / "cases.txt").read_text().splitlines():
            yield "config", urllib.parse.unquote_to_bytes(case)
    yield "config", (ROOT / "conf" / "zoo.cfg").read_bytes()
    yield "config", b"dataDir=/d\nclientPort=2181\n--\n-Dzookeeper.snapCount=5\n"
    yield "config", b"++\n2181\n/d\n2000\n60\n"
    digest, kerberos = b"org.apache.zookeeper.server.auth.DigestLoginModule", b"com.sun.security.auth.module.Krb5LoginModule"
    sections = [b'C { %s required user_bob="a\\"\\101"; }; // ours\n' % digest, b'S { %s optional user_z="${user.home}"; };' % digest]
    yield "jaas", b"".join(sections) + b'/* */ L { %s required username=z password="p"; };' % digest
    yield "jaas", b'S { %s required useKeyTab=true keyTab="/k" principal="a/b@R"; };' % kerberos
    yield "logback", (ROOT / "compat-tests/audit/logback.xml").read_bytes()
    for text in re.findall(r"<configuration>.*?</configuration>", (ROOT / "tests/process/logs.rs").read_text(), re.DOTALL):
        yield "logback", text.encode()
    answers = ROOT / "src/net/tls/test_answers"
    root, leaf = ((answers / name).read_bytes() for name in ("root.der", "leaf.der"))
    yield "certificates", root + b"--" + leaf
    for answer in answers.glob("*.der"):
        yield "certificates", root + b"--" + answer.read_bytes() + b"--" + leaf
    for line in (GOLDEN / "names" / "expected.txt").read_text().splitlines()[::20]:
        kind, text, _ = line.split(" ")
        yield "certificates", bytes.fromhex(text) if kind == "der" else urllib.parse.unquote_to_bytes(text)
    for store in sorted((GOLDEN / "tls").glob("*.[jp]*")):
        yield "stores", store.read_bytes()
        if store.suffix == ".jks":
            yield "stores", b"\1" + store.read_bytes()[:-20]
    for word in b"conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat stmk wchc wchp wchs".split():
        yield "words", word
    for request in ("GET /commands", "POST /commands/rest x=1&x=2 digest a:b", "GET /commands/%C3%A9;x=1/../stmk traceMask=%2B5+", "HEAD /ready"):
        yield "http", request.encode()
    for start in peers():
        yield "peers", start
    for start in hellos():
        yield "hello", start
    yield "words", struct.pack(">iiqiq", 45, 0, 0, 10_000, 0) + struct.pack(">i", 16) + bytes(17)
    for exchange in (GOLDEN / "sasl" / "exchanges.tsv").read_text().splitlines():
        _, _, _, challenge, response, last = exchange.split("\t")
        for kind, token in ((0, response), (1, response), (2, challenge), (3, challenge), (4, last)):
            yield "digest_md5", bytes([kind]) + bytes.fromhex(token)
    for line in (GOLDEN / "kerberos" / "expected.txt").read_text().splitlines()[::10]:
        rules, name, _ = (urllib.parse.unquote_to_bytes(field) for field in line.split(" "))
        yield "kerberos", rules + b"\0" + name
    yield "words", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    yield "words", bytes.fromhex("16030100a5010000a10303")
    for first in ("16030100a5010000a10303", "1603", "16030500", "0000002d00000000", "ffffffffffff0000"):
        yield "detection", bytes.fromhex(first)


def main():
    into = pathlib.Path(sys.argv[1])
    for number, (target, content) in enumerate(seeds()):
        folder = into / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:04}").write_bytes(content)


if __name__ == "__main__":
    main()
