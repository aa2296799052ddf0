"""Settings of TLS: suites that fit the other kind of key."""

import __main__ as suite

SERVED, REFUSED, NO_START = "served", "refused", "no start"


def groups():
    yield from key_groups()


# rows: C-192
def key_groups():
    """Suites of TLS 1.2 that fit the other kind of key."""
    refused = "a server whose key fits no suite is refused at the start"
    of = {"rsa": "ECDHE-RSA-AES256-GCM-SHA384", "ec": "ECDHE-ECDSA-AES256-GCM-SHA384"}
    names = {"rsa": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ec": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
    for key, other in (("rsa", "ec"), ("ec", "rsa")):
        lines = [*suite.stores(f"{key}.jks"), "enabledProtocols=TLSv1.2,TLSv1.3"]
        yield f"{key} key, suites of {other} keys", [*lines, f"ciphersuites={names[other]}"], [
            ("client", suite.client(), REFUSED, NO_START, refused), ("client of that suite", suite.client(high="1.2", suites=of[other]), REFUSED, NO_START, refused)]
        yield f"{key} key, suites of {other} keys and of TLS 1.3", [*lines, f"ciphersuites={names[other]},TLS_AES_128_GCM_SHA256"], [
            ("TLS 1.3", suite.client(low="1.3"), SERVED), ("TLS 1.2", suite.client(high="1.2", suites=of[other]), REFUSED)]
