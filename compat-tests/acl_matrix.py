"""Every kind of client against every kind of access list: which lists it may store, and what it may do under them."""

import hashlib
import struct

from ear import GET_ACL, SET_ACL, SYNC, WHO_AM_I, acl, create, ear, identities, no_stat, path
from wire import CHILDREN, CLOSE, CREATE, EXISTS, GET, SET, buffer

DELETE, CHILDREN_2, MULTI, CREATE_2, REMOVE_WATCHES, CREATE_CONTAINER, MULTI_READ = 2, 12, 14, 15, 18, 19, 22
CHECK, GET_EPHEMERALS, CHILDREN_NUMBER, ADD_WATCH = 13, 103, 104, 106
ANY_VERSION, NO_WATCH, CONTAINER = struct.pack(">i", -1), b"\0", 4


def entries(body):
    """An access list, sorted: the ids that replace `auth` are in Java in the order of a hash set."""
    listed = body[:-68]
    if not listed:
        return len(body)
    (count,), at, found = struct.unpack_from(">i", listed), 4, []
    for _ in range(count):
        since, at = at, at + 4
        for _ in range(2):
            at += 4 + struct.unpack_from(">i", listed, at)[0]
        found.append(listed[since:at])
    return sorted(found)


def multi(*operations):
    """Pairs of a kind and its record."""
    pieces = [struct.pack(">i?i", kind, False, -1) + record for kind, record in operations]
    return b"".join(pieces) + struct.pack(">i?i", -1, True, -1)


def container(name):
    return create(name)[:-4] + struct.pack(">i", CONTAINER)


def operations(node, entry):
    """Every operation that looks at the list of `node`, or at none; `entry` is the list."""
    one = path(node)
    yield GET, one + NO_WATCH, no_stat
    yield SET, one + buffer(b"x") + ANY_VERSION, len
    yield GET_ACL, one, entries
    for kind in (CHILDREN, CHILDREN_2, EXISTS):
        yield kind, one + NO_WATCH, len
    yield CREATE, create(f"{node}/c"), len
    yield DELETE, path(f"{node}/c") + ANY_VERSION, len
    yield CREATE_2, create(f"{node}/d"), len
    yield CREATE_CONTAINER, container(f"{node}/e"), len
    yield MULTI, multi((CHECK, one + ANY_VERSION), (SET, one + buffer(b"x") + ANY_VERSION), (DELETE, path(f"{node}/d") + ANY_VERSION)), len
    yield DELETE, path(f"{node}/e") + ANY_VERSION, len
    yield MULTI_READ, multi((GET, one + NO_WATCH), (CHILDREN, one + NO_WATCH)), len
    for kind in (CHILDREN_NUMBER, GET_EPHEMERALS):
        yield kind, one, len
    yield ADD_WATCH, one + struct.pack(">i", 0), len
    yield REMOVE_WATCHES, one + struct.pack(">i", 3), len
    yield SET_ACL, one + acl(entry) + ANY_VERSION, len


def matrix(root, kinds, lists, asks=lambda kind, scheme, name: True):
    """What `root` and each kind of client is answered.

    `root`: a client that passes every list. `kinds`: by name what makes a client. `lists`: pairs of scheme and id. `asks`: whether a kind of client tries
    a list."""
    heard = []
    for number, (scheme, name) in enumerate(lists):
        root.ask(1, CREATE, create(f"/l{number}", b"x", acl((31, scheme, name)))).ask(2, GET_ACL, path(f"/l{number}"), entries)
        root.ask(3, CREATE, create(f"/r{number}", b"x", acl((1, scheme, name), (2, "sasl", "nobody"))))
    heard += root.heard
    for kind, made in kinds.items():
        one = made()
        one.ask(90, WHO_AM_I, shown=identities)
        for number, (scheme, name) in enumerate(lists):
            if not asks(kind, scheme, name):
                continue
            one.heard.append((kind, scheme, name))
            for node in (f"/l{number}", f"/r{number}"):
                for xid, asked in enumerate(operations(node, (31, scheme, name)), 1):
                    one.ask(xid, *asked)
            mine = f"/m{hashlib.md5(kind.encode()).hexdigest()[:8]}-{number}"
            one.ask(70, CREATE, create(mine, b"", acl((31, scheme, name)))).ask(71, GET_ACL, path(mine), entries)
        one.ask(72, SYNC, path("/")).ask(73, CLOSE).hear()
        heard += one.heard
    return without_zxids(heard)


def without_zxids(heard):
    return [entry[:1] + entry[2:] if isinstance(entry, tuple) and isinstance(entry[0], int) else entry for entry in heard]


def digest(server, shown):
    """Makes a client with this user and password of scheme `digest`."""
    return lambda: ear(server).show("digest", shown)
