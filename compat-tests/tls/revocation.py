"""An authority whose certificates can be revoked, with a web server for its lists and as its OCSP responder. Made anew for each run."""

import base64
import contextlib
import http.server
import pathlib
import subprocess
import tempfile
import threading
import time
import urllib.parse

from factory import Factory

EC = "ec:prime256v1"
OLD = ("20200101000000Z", "20210101000000Z")


def utc(seconds):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))


class Web(http.server.ThreadingHTTPServer):
    request_queue_size = 256  # With the usual five a burst of servers waits seconds for a connection.


class Authority:
    """`folder` has the leaf certificates; `trust.pem` there is what servers trust."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="oxkeeper-revocation-"))
        self.made = Factory(self.folder)
        self.web = Web(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.web.server_port}"
        self.made.authority("ca", EC)
        self.made.authority("other", EC)
        self.make_leaves()
        self.make_lists()

    def make_leaves(self):
        made, lists = self.made, lambda *names: [f"crlDistributionPoints={','.join(f'URI:{self.address}/{name}' for name in names)}"]
        responder = lambda name: [f"authorityInfoAccess=OCSP;URI:{self.address}/ocsp/{name}"]  # noqa: E731
        closed = "URI:http://127.0.0.1:1/ca.crl"
        for name, extra in {
            "plain": [],
            "listed": lists("ca.crl"),
            "listed-pem": lists("ca.pem.crl"),
            "file": [f"crlDistributionPoints=URI:file://{self.folder}/ca.crl"],
            "revoked": lists("ca.crl"),
            # No other row asks for its first list: Java remembers for 30 s that it could not be fetched, and is content with the second one then.
            "two-lists": lists("absent.crl", "ca.crl"),
            "missing": lists("none.crl"),
            "unreachable": [f"crlDistributionPoints={closed}"],
            "silent": lists("silent"),
            "old-list": lists("old.crl"),
            "recent-list": lists("recent.crl"),
            "early-list": lists("early.crl"),
            "other-list": lists("other.crl"),
            "rubbish": lists("rubbish"),
            "asked": responder("ca"),
            "asked-revoked": responder("ca"),
            "delegated": responder("delegate"),
            "stranger-answers": responder("stranger"),
            "unknown": responder("unknown"),
            "no-answer": responder("none"),
            "down": ["authorityInfoAccess=OCSP;URI:http://127.0.0.1:1/ocsp"],
            "no-answer-listed": responder("none") + lists("ca.crl"),
            "no-answer-revoked": responder("none") + lists("ca.crl"),
            "unknown-listed": responder("unknown") + lists("ca.crl"),
            "asked-revoked-list-old": responder("ca") + lists("good.crl"),
        }.items():
            made.leaf(name, "ca", EC, extra=extra)
        made.leaf("responder", "ca", EC, names=None, usage="OCSPSigning")
        made.leaf("pinned", "pinned", EC)
        made.leaf("below-listed", "ca", EC, names=None, extra=["basicConstraints=critical,CA:TRUE", *lists("ca.crl")])
        made.leaf("below-revoked", "ca", EC, names=None, extra=["basicConstraints=critical,CA:TRUE", *lists("ca.crl")])
        for name in ("listed", "revoked"):
            made.leaf(f"under-{name}", f"below-{name}", EC, extra=lists(f"below-{name}.crl"))

    def make_lists(self):
        made = self.made
        texts = [(self.folder / f"{name}.crt").read_text() for name in ("ca", "pinned")]
        (self.folder / "trust.pem").write_text("".join(texts))
        self.list("good.crl")
        for name in ("revoked", "asked-revoked", "no-answer-revoked", "asked-revoked-list-old", "below-revoked"):
            made.openssl("ca", "-config", "openssl.cnf", "-cert", "ca.crt", "-keyfile", "ca.key", "-revoke", f"{name}.crt")
        self.list("ca.crl")
        made.openssl("crl", "-inform", "DER", "-in", "ca.crl", "-out", "ca.pem.crl")
        self.list("old.crl", OLD)
        self.list("recent.crl", (utc(-3600), utc(-300)))
        self.list("early.crl", (utc(3600), utc(7200)))
        self.list("other.crl", by="other")
        for name in ("below-listed", "below-revoked"):
            self.list(f"{name}.crl", by=name)
        (self.folder / "rubbish").write_bytes(bytes(1000))
        (self.folder / "empty.txt").write_text("")

    def list(self, name, dates=None, by="ca"):
        dates = dates or (utc(-60), utc(86_400))
        self.made.openssl("ca", "-gencrl", "-config", "openssl.cnf", "-cert", f"{by}.crt", "-keyfile", f"{by}.key", "-crl_lastupdate", dates[0],
                          "-crl_nextupdate", dates[1], "-out", "list.tmp")
        self.made.openssl("crl", "-in", "list.tmp", "-outform", "DER", "-out", name)

    def answer(self, who, request):
        """The OCSP response of the responder `who`."""
        signer, index = {"ca": ("ca", "index.txt"), "delegate": ("responder", "index.txt"), "stranger": ("other", "index.txt"),
                         "unknown": ("ca", "empty.txt")}[who]
        with tempfile.TemporaryDirectory() as scratch:
            asked, said = pathlib.Path(scratch, "asked"), pathlib.Path(scratch, "said")
            asked.write_bytes(request)
            subprocess.run(["openssl", "ocsp", "-index", index, "-CA", "ca.crt", "-rsigner", f"{signer}.crt", "-rkey", f"{signer}.key",
                            "-ndays", "1", "-reqin", asked, "-respout", said], cwd=self.folder, check=True, capture_output=True)
            return said.read_bytes()

    def cert(self, name):
        """The path of a certificate, as `client` and `context` of `run` take it."""
        return str(self.folder / name)


def handler(authority):
    class Handler(http.server.BaseHTTPRequestHandler):
        def say(self, body, kind):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def respond(self, who, request):
            if who == "none":
                return self.send_error(500)
            return self.say(authority.answer(who, request), "application/ocsp-response")

        def do_GET(self):  # noqa: N802
            parts = self.path.strip("/").split("/", 2)
            if parts[0] == "ocsp":  # The JDK sends short requests in the URL.
                return self.respond(parts[1], base64.b64decode(urllib.parse.unquote(parts[2])))
            if parts[0] == "silent":
                return time.sleep(40)
            try:
                return self.say((authority.folder / parts[0]).read_bytes(), "application/pkix-crl")
            except OSError:
                return self.send_error(404)

        def do_POST(self):  # noqa: N802
            self.respond(self.path.strip("/").split("/")[1], self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *_):
            pass

        def handle(self):
            with contextlib.suppress(OSError):
                super().handle()

    return Handler
