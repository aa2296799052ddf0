"""The tests' client over TLS."""

import ssl

from client import Client
from factory import folder


def context_of(name):
    """Shows this certificate, and checks the server's."""
    made = folder()
    context = ssl.create_default_context(cafile=made / "trust.pem")
    context.load_cert_chain(made / f"{name}.pem", made / f"{name}.key")
    return context


class SecureClient(Client):
    """Shows a client's certificate, and checks the server's."""

    def __init__(self, addresses, session):
        """Goes on with the session of another client."""
        self.addresses, self.at, self.events, self.timeout_ms = addresses, 0, [], session.timeout_ms
        self.id, self.password, self.zxid = session.id, session.password, session.zxid
        self.connect()

    def dial(self, host, port, seconds):
        return context_of("client").wrap_socket(super().dial(host, port, seconds), server_hostname=host)
