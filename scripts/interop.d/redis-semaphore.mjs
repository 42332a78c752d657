// needs: npm redis-semaphore@5.8.0 ioredis@5.11.1
// away: down=fails quarantine=ok (ioredis asks a node that is down twenty times before it gives up)
// lacks: token
// prefix: mutex:
// also: wait
// redis-semaphore's Mutex on one node and RedlockMutex on all: SET PX NX and two scripts.
import assert from 'node:assert/strict';
import { load, nodes, serve, title } from './story/adapter.mjs';

const Redis = load('ioredis');
const { Mutex, RedlockMutex } = load('redis-semaphore');

const clients = nodes.map((node) => new Redis(node));
let key, mutex;

// Its refreshing timer is off: the story decides when a lock is extended.
const options = (lockTimeout) => ({ lockTimeout, acquireAttemptsLimit: 1, refreshInterval: 0 });

// On one node; the second waits until the first has released.
async function wait() {
  const [holder, other] = [1, 2].map(() => new Mutex(clients[0], 'interop:wait', options(30_000)));
  const waiter = new Mutex(clients[0], 'interop:wait', { ...options(30_000), acquireAttemptsLimit: Infinity });
  assert(await holder.tryAcquire());
  assert(!(await other.tryAcquire()));
  const waiting = waiter.acquire();
  await holder.release();
  await waiting;
  await waiter.release();
  return true;
}

await serve(title('redis-semaphore', 'ioredis'), {
  wait,
  acquire(name, ttl) {
    key = name;
    mutex = new RedlockMutex(clients, key, options(ttl));
    return mutex.tryAcquire();
  },
  // A mutex that was acquired elsewhere is refreshed instead: the library's way to extend.
  extend(ttl) {
    const again = { identifier: mutex.identifier, acquiredExternally: true, ...options(ttl) };
    mutex = new RedlockMutex(clients, key, again);
    return mutex.tryAcquire();
  },
  query: () => mutex.isAcquired,
  release: () => mutex.release(),
  close: () => Promise.all(clients.map((client) => client.quit())),
});
