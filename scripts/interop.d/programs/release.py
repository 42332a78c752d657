# needs: pip cyclonedx-python-lib[json-validation]==11.12.0
"""What scripts/release makes of the program that is tested here: the same bytes twice, a package that installs what the pages say,
a list of parts that CycloneDX's own schema accepts, and sums that are right."""

import filecmp
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BINARY = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "locknode")
INSTALLED = {
    "usr/bin/locknode": 0o755,
    "usr/lib/systemd/system/locknode.service": 0o644,
    "etc/locknode.toml": 0o600,
    "usr/share/man/man1/locknode-serve.1.gz": 0o644,
    "usr/share/bash-completion/completions/locknode": 0o644,
    "usr/share/doc/locknode/monitoring/alerts.yml": 0o644,
}


def made(directory):
    command = [os.path.join(ROOT, "scripts", "release"), "--binary", BINARY, "--only", "tar,deb,sbom", directory]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return sorted(os.listdir(directory))


def package(path, directory):
    subprocess.run(["dpkg-deb", "-R", path, directory], check=True)
    for name, mode in INSTALLED.items():
        found = os.stat(os.path.join(directory, name)).st_mode & 0o777
        assert found == mode, f"{name} has the mode {found:o}"
    with open(os.path.join(directory, "DEBIAN", "conffiles"), encoding="utf-8") as file:
        assert file.read() == "/etc/locknode.toml\n"
    for script in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", os.path.join(directory, "DEBIAN", script)], check=True)
    subprocess.run(["md5sum", "-c", "--quiet", "DEBIAN/md5sums"], check=True, cwd=directory)
    # The file is one that a node takes, and so is its command line.
    config = os.path.join(directory, "etc", "locknode.toml")
    program = os.path.join(directory, "usr", "bin", "locknode")
    subprocess.run([program, "serve", "--config", config, "--print-config"], check=True, stdout=subprocess.DEVNULL)
    return subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]


def parts(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    assert error is None, error
    names = set(re.findall(r'"bom-ref": "pkg:cargo/([^@"]+)', text))
    assert {"locknode-cli", "locknode-engine", "mlua", "rustls", "tokio"} <= names, names
    # What only tests need is no part of the program.
    assert not names & {"proptest", "criterion", "rcgen"}, names
    return len(names)


if os.environ["INTEROP_SERVER"] != "locknode":
    print("these packages are of lock nodes")
    sys.exit(77)
if not shutil.which("dpkg-deb"):
    print("dpkg-deb is not installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as directory:
    one, other = (os.path.join(directory, name) for name in ("one", "other"))
    names = made(one)
    assert names == made(other), names
    _, differ, failed = filecmp.cmpfiles(one, other, names, shallow=False)
    assert not differ and not failed, f"not the same bytes twice: {differ}"
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], check=True, cwd=one)
    [deb] = [name for name in names if name.endswith(".deb")]
    version = package(os.path.join(one, deb), os.path.join(directory, "root"))
    assert f"_{version}_" in deb, f"{deb} has the program {version}"
    [bom] = [name for name in names if name.endswith(".cdx.json")]
    count = parts(os.path.join(one, bom))
print(f"packages of {version}, the same bytes twice; CycloneDX {importlib.metadata.version('cyclonedx-python-lib')} takes {count} parts")
