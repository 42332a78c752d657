// needs: npm redis-semaphore@5.8.0 ioredis@5.11.1
// away: down=fails quarantine=ok (ioredis asks a node that is down twenty times before it gives up)
// lacks: token
// has: wait watchdog
// prefix: mutex:
// also: one
// redis-semaphore's RedlockMutex on all nodes and Mutex on one: SET PX NX and two scripts.
import assert from 'node:assert/strict';
import { load, nodes, serve, title } from './story/adapter.mjs';

const Redis = load('ioredis');
const { Mutex, RedlockMutex } = load('redis-semaphore');

const clients = nodes.map((node) => new Redis(node));
let key, mutex;

// Without its refreshing timer the story decides when a lock is extended.
const options = (lockTimeout) => ({ lockTimeout, acquireAttemptsLimit: 1, refreshInterval: 0 });

function take(name, ttl, more) {
  key = name;
  mutex = new RedlockMutex(clients, key, { ...options(ttl), ...more });
  return mutex.tryAcquire();
}

// On one node; the second waits until the first has released.
async function one() {
  const [holder, other] = [1, 2].map(() => new Mutex(clients[0], 'interop:one', options(30_000)));
  const waiter = new Mutex(clients[0], 'interop:one', { ...options(30_000), acquireAttemptsLimit: Infinity });
  assert(await holder.tryAcquire());
  assert(!(await other.tryAcquire()));
  const waiting = waiter.acquire();
  await holder.release();
  await waiting;
  await waiter.release();
  return true;
}

await serve(title('redis-semaphore', 'ioredis'), {
  one,
  acquire: (name, ttl) => take(name, ttl),
  wait: (name, ttl) => take(name, ttl, { acquireAttemptsLimit: Infinity }),
  watch: (name, ttl) => take(name, ttl, { refreshInterval: ttl / 4 }),
  // A mutex that was acquired elsewhere is refreshed instead: the library's way to extend.
  extend: (ttl) => take(key, ttl, { identifier: mutex.identifier, acquiredExternally: true }),
  query: () => mutex.isAcquired,
  release: () => mutex.release(),
  close: () => Promise.all(clients.map((client) => client.quit())),
});
