"""The client's half of DIGEST-MD5, which can be told to break each rule."""

import hashlib
import re

SERVER, URI = "zk-sasl-md5", "zookeeper/zk-sasl-md5"


def value(token, key):
    found = re.search(rb'(?:^|,)' + key.encode() + rb'=(?:"([^"]*)"|([^,]*))', token)
    return found and (found[1] or found[2]).decode()


def latin(text):
    """Text as it is hashed: Latin-1 if it fits."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def respond(challenge, user, password, *, realm=SERVER, nonce=None, nc="00000001", sent_nc=None, qop="auth", uri=URI, authzid=None,
            cnonce="abcdef", username=None, extra="", left_out=()):
    """The response to a challenge; what is given in place of the defaults is sent, and hashed as if it were right."""
    nonce = nonce or value(challenge, "nonce")
    md5 = lambda data: hashlib.md5(data)  # noqa: E731
    secret = md5(latin(user) + b":" + latin(realm) + b":" + latin(password)).digest()
    session = secret + f":{nonce}:{cnonce}".encode() + (b"" if authzid is None else b":" + authzid.encode())
    layer = "" if qop == "auth" else ":" + "0" * 32
    action = md5(f"AUTHENTICATE:{uri}{layer}".encode()).hexdigest()
    proof = md5(f"{md5(session).hexdigest()}:{nonce}:{nc}:{cnonce}:{qop}:{action}".encode()).hexdigest()
    quote = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'  # noqa: E731
    parts = {"charset": "utf-8", "username": quote(username or user), "realm": quote(realm), "nonce": quote(nonce),
             "nc": sent_nc or nc, "cnonce": quote(cnonce), "digest-uri": quote(uri), "maxbuf": "65536", "response": proof, "qop": qop}
    if authzid is not None:
        parts["authzid"] = quote(authzid)
    return (",".join(f"{key}={part}" for key, part in parts.items() if key not in left_out) + extra).encode()
