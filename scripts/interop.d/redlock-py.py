# needs: pip redlock-py==1.0.8 redis==8.1.0 setuptools==80.9.0
# away: down=fails quarantine=fails (any error of a node is raised)
"""redlock-py: SET PX NX, and EVAL of the release script on every node."""

import importlib.metadata
import os
import sys

# In place of this directory, whose files are called like the libraries.
sys.path[0] = os.path.join(os.path.dirname(__file__), "story")
import redlock
import story


class Client:
    def __init__(self):
        servers = [{"host": host, "port": port} for host, port in story.node_addresses()]
        self.manager = redlock.Redlock(servers, retry_count=1, retry_delay=0.01)

    def acquire(self, resource, ttl):
        return self.manager.lock(resource, ttl)

    def release(self, handle):
        self.manager.unlock(handle)


steps = story.tell(Client)
version = importlib.metadata.version
print(f"redlock-py {version('redlock-py')} on redis-py {version('redis')} ({steps})")
