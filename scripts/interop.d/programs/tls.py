# needs: pip redis==8.1.0
"""redis-py over TLS, with a certificate of its own, with none, and with none that the node accepts.

It starts a node of its own with certificates that openssl makes. Other servers are configured otherwise: there it is
skipped.
"""

import importlib.metadata
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import redis

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BINARY = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "locknode")


def openssl(folder, *words):
    """Runs openssl in a folder."""
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def certificates(folder):
    """An authority, and what it signs for a node and a client."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout"]
    openssl(folder, "req", "-x509", *key, "ca.key", "-subj", "/CN=locks", "-out", "ca.pem")
    with open(os.path.join(folder, "names"), "w", encoding="ascii") as names:
        names.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("node", "client"):
        openssl(folder, "req", *key, f"{name}.key", "-subj", f"/CN={name}", "-out", f"{name}.csr")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"]
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")


def story(folder, port):
    """What redis-py does on the node, with and without a certificate."""
    path = lambda name: os.path.join(folder, name)
    trust = {"host": "localhost", "port": port, "ssl": True, "ssl_ca_certs": path("ca.pem")}
    identity = {"ssl_certfile": path("client.pem"), "ssl_keyfile": path("client.key")}
    client = redis.Redis(**trust, **identity, decode_responses=True)
    with client.lock("interop:tls", timeout=10) as lock:
        assert client.get("interop:tls") == lock.local.token.decode()
    assert client.get("interop:tls") is None
    for wrong in (redis.Redis(**trust), redis.Redis(host="localhost", port=port)):
        try:
            wrong.ping()
        except (redis.ConnectionError, redis.ResponseError, OSError):
            continue
        raise AssertionError("served without a certificate")


if os.environ.get("INTEROP_SERVER") not in (None, "locknode") or not os.path.exists(BINARY):
    print("not a node of ours")
    sys.exit(77)
if shutil.which("openssl") is None:
    print("no openssl to make certificates with")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder, socket.socket() as holder:
    # Bound, so that no other process gets the port, and not listening.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    certificates(folder)
    files = ["--tls-cert-file", "node.pem", "--tls-key-file", "node.key", "--tls-ca-cert-file", "ca.pem"]
    command = [BINARY, "serve", "--first-start", "--port", "0", "--tls-port", str(port), *files]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as node:
        try:
            while not re.search("listening on .* with TLS", line := node.stderr.readline()):
                if not line:
                    sys.exit(f"{command} ended before it served")
            story(folder, port)
        finally:
            node.terminate()
            node.stderr.read()
print(f"tls: redis-py {importlib.metadata.version('redis')} with a client certificate, and refused without one")
