"""Drives a Python library by the lines that story.py describes.

usage: adapter.py FILE   where FILE has a `Client`, made from the (host, port) of every node, with a method for each
request, and the names of its PACKAGES. A method returns True or False for `yes` or `no`, None for `done`, or a number.
"""

import importlib.metadata
import os
import runpy
import sys

WORDS = {True: "yes", False: "no", None: "done"}


def main(path):
    # The file's directory, whose files are called like the libraries, is not on the path: this one is.
    file = runpy.run_path(path)
    pairs = (address.rsplit(":", 1) for address in os.environ["INTEROP_NODES"].split(","))
    client = file["Client"]([(host, int(port)) for host, port in pairs])
    title = " on ".join(f"{name} {importlib.metadata.version(name)}" for name in file["PACKAGES"])
    print(f"ready {title}", flush=True)
    for line in sys.stdin:
        name, *words = line.split()
        try:
            reply = getattr(client, name)(*(int(word) if word.isdigit() else word for word in words))
            text = str(reply) if type(reply) is int else WORDS[reply]
        except Exception as error:
            text = " ".join(f"error {error!r}".split())
        print(text, flush=True)
    if hasattr(client, "close"):
        client.close()


main(sys.argv[1])
