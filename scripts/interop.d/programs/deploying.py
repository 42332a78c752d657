# needs: pip kubernetes-validate==1.37.0 PyYAML==6.0.4
"""The files of docs/deploy: Kubernetes's schemas, systemd's own checks, and a node that takes each command line."""

import functools
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import kubernetes_validate
import yaml

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
DEPLOY = os.path.join(ROOT, "docs", "deploy")
BINARY = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "locknode")
# The oldest release that a cloud still sells, and the newest whose schemas are known here.
KUBERNETES = ("1.31", "1.37")
# Of 10, by `systemd-analyze security`; a unit without any restriction has 9.6.
MOST_EXPOSED = 1.5


def read(name):
    with open(os.path.join(DEPLOY, name), encoding="utf-8") as file:
        return file.read()


def takes(words):
    """Fails unless a node takes the options, and says where it keeps its locks."""
    assert words[0] == "serve", words
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write('bind = "10.0.0.1 127.0.0.1"\nrequirepass = "secret"\nmaxmemory = "512mb"\n')
        config.flush()
        places = {"%d/config.toml": config.name, "%S": "/var/lib", "%t": "/run"}
        words = [functools.reduce(lambda word, place: word.replace(*place), places.items(), word) for word in words]
        printed = subprocess.run([BINARY, *words, "--print-config"], capture_output=True, text=True, check=False)
    assert printed.returncode == 0, f"{words}: {printed.stderr}"
    assert re.search(r'^dir = "/', printed.stdout, re.M), f"{words} keeps no locks"


def kubernetes():
    documents = list(yaml.safe_load_all(read("kubernetes.yaml")))
    for document in documents:
        for version in KUBERNETES:
            kubernetes_validate.validate(document, version, strict=True)
    kinds = {document["kind"]: document for document in documents}
    pod = kinds["StatefulSet"]["spec"]["template"]
    labels = pod["metadata"]["labels"]
    selectors = [
        kinds["Service"]["spec"]["selector"],
        kinds["StatefulSet"]["spec"]["selector"]["matchLabels"],
        kinds["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        kinds["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector == labels for selector in selectors), "each selects the pods"
    [container] = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["name"]: port["port"] for port in kinds["Service"]["spec"]["ports"]} == ports
    allowed = [port["port"] for rule in kinds["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    assert sorted(allowed) == sorted(ports.values())
    takes(container["args"])
    return f"Kubernetes {' and '.join(KUBERNETES)}"


def compose():
    services = yaml.safe_load(read("compose.yaml"))["services"]
    assert len(services) == 5
    assert len({service["ports"][0] for service in services.values()}) == 5
    assert len({service["volumes"][0] for service in services.values()}) == 5
    for service in services.values():
        takes(service["command"])
    return "compose"


def image():
    [command] = re.findall(r"^CMD (\[.*\])$", read("Dockerfile"), re.M)
    takes(yaml.safe_load(command))
    return "Dockerfile"


def systemd():
    unit = read("locknode.service").replace("\\\n", " ")
    [command] = re.findall(r"^ExecStart=/usr/bin/locknode (.*)$", unit, re.M)
    takes(shlex.split(command))
    if not shutil.which("systemd-analyze"):
        return "locknode.service (not checked by systemd, which is not here)"
    with tempfile.TemporaryDirectory() as directory:
        # The unit is about an installed binary, and its manual is not here.
        unit = read("locknode.service").replace("/usr/bin/locknode", BINARY)
        path = os.path.join(directory, "locknode.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^Documentation=.*\n", "", unit, flags=re.M))
        verified = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
        assert verified.returncode == 0 and not verified.stderr, verified.stderr
        security = ["systemd-analyze", "security", "--offline=true", path]
        text = subprocess.run(security, capture_output=True, text=True, check=False).stdout
    exposure = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", text)[1])
    assert exposure <= MOST_EXPOSED, f"exposure {exposure}"
    return f"systemd, exposure {exposure} of 10"


if os.environ["INTEROP_SERVER"] != "locknode":
    print("these files start lock nodes")
    sys.exit(77)
checked = [kubernetes(), compose(), image(), systemd()]
version = importlib.metadata.version("kubernetes-validate")
print(f"docs/deploy as docs/deploying.md shows it ({', '.join(checked)}; kubernetes-validate {version})")
