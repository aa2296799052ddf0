"""The end of GSSAPI that dials, by the system's libgssapi_krb5: the tests change what it says, which no client does."""

import ctypes
import os
import threading

CONTINUE, ERRORS = 1, 0xFFFF0000
MUTUAL, INTEGRITY = 2, 32
KERBEROS, PRINCIPAL = bytes.fromhex("2a864886f712010202"), bytes.fromhex("2a864886f71201020201")


TICKETS = threading.Lock()  # The environment, which all threads share, names the tickets to use.


class Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_char_p)]


class Output(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_void_p)]


class Oid(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("elements", ctypes.c_char_p)]


class GssError(Exception):
    """The library refuses."""


def library():
    loaded = ctypes.CDLL("libgssapi_krb5.so.2")
    for name in ("gss_init_sec_context", "gss_import_name", "gss_wrap", "gss_unwrap", "gss_display_status"):
        getattr(loaded, name).restype = ctypes.c_uint32
    return loaded


def oid(bytes_):
    return ctypes.byref(Oid(len(bytes_), bytes_))


class Initiator:
    """One exchange of the principal whose tickets are in `cache` with the service `to`."""

    def __init__(self, cache, to, mutual=False):
        self.library, self.context, self.name = library(), ctypes.c_void_p(), ctypes.c_void_p()
        self.flags, self.cache = INTEGRITY | (MUTUAL if mutual else 0), cache
        self.is_established = False
        text = to.encode()
        self.call("gss_import_name", ctypes.byref(Buffer(len(text), text)), oid(PRINCIPAL), ctypes.byref(self.name))

    def call(self, name, *arguments):
        minor = ctypes.c_uint32()
        major = getattr(self.library, name)(ctypes.byref(minor), *arguments)
        if major & ERRORS:
            raise GssError(f"{name}: {major:x} {minor.value}")
        return major

    def taken(self, output):
        return ctypes.string_at(output.value, output.length) if output.length else b""

    def step(self, token=b""):
        """The token for the service, after its token."""
        output = Output()
        with TICKETS:
            os.environ["KRB5CCNAME"] = f"FILE:{self.cache}"
            major = self.call("gss_init_sec_context", None, ctypes.byref(self.context), self.name, oid(KERBEROS), self.flags, 0, None,
                              ctypes.byref(Buffer(len(token), token)), None, ctypes.byref(output), None, None)
        self.is_established = not major & CONTINUE
        return self.taken(output)

    def unwrap(self, token):
        output = Output()
        self.call("gss_unwrap", self.context, ctypes.byref(Buffer(len(token), token)), ctypes.byref(output), None, None)
        return self.taken(output)

    def wrap(self, text):
        output = Output()
        self.call("gss_wrap", self.context, 0, 0, ctypes.byref(Buffer(len(text), text)), None, ctypes.byref(output))
        return self.taken(output)
