// needs: npm redlock@4.2.0 ioredis@5.11.1
// away: down=fails quarantine=ok (ioredis asks a node that is down twenty times before it gives up)
// lacks: token
// node-redlock 4: every step is an EVALSHA over all keys, with EVAL on NOSCRIPT.
import { isOneAway, load, nodes, serve, title } from './story/adapter.mjs';

const Redis = load('ioredis');
const Redlock = load('redlock');

const redlock = new Redlock(nodes.map((node) => new Redis(node)), { retryCount: 0 });
const failures = [];
// A vote against is no error.
redlock.on('clientError', (error) => failures.push(error));
let lock;

// Whether the library does it; a node that fails is no node that refuses.
async function attempt(action) {
  try {
    lock = (await action()) ?? lock;
    return true;
  } catch (error) {
    if (error.name !== 'LockError') throw error;
    return false;
  } finally {
    if (failures.length > 0 && !isOneAway) throw failures[0];
  }
}

await serve(`node-${title('redlock', 'ioredis')}`, {
  acquire: (key, ttl) => attempt(() => redlock.lock(key, ttl)),
  extend: (ttl) => attempt(() => lock.extend(ttl)),
  query: () => Math.max(0, lock.expiration - Date.now()),
  release: () => attempt(() => lock.unlock()),
  close: () => redlock.quit(),
});
