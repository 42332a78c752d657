# needs: pip redlock-py==1.0.8 redis==8.1.0 setuptools==80.9.0
# away: down=fails quarantine=fails (any error of a node is raised)
# lacks: extend query token
"""redlock-py: SET PX NX, and EVAL of the release script on every node."""

import redlock

PACKAGES = ["redlock-py", "redis"]


class Client:
    def __init__(self, nodes):
        servers = [{"host": host, "port": port} for host, port in nodes]
        self.manager = redlock.Redlock(servers, retry_count=1, retry_delay=0.01)

    def acquire(self, key, ttl, _token):
        self.lock = self.manager.lock(key, ttl)
        return bool(self.lock)

    def release(self):
        self.manager.unlock(self.lock)
