// needs: npm redis-semaphore@5.8.0 ioredis@5.11.1
// away: down=fails quarantine=ok (ioredis asks a node that is down twenty times before it gives up)
// redis-semaphore's Mutex on one node and RedlockMutex on all: SET PX NX and two scripts.
import assert from 'node:assert/strict';
import { isOneAway, load, nodes, RESOURCE, tell, title } from './story/story.mjs';

const Redis = load('ioredis');
const { Mutex, RedlockMutex } = load('redis-semaphore');

// Its refreshing timer is off: the story decides when a lock is extended.
const options = (lockTimeout) => ({ lockTimeout, acquireAttemptsLimit: 1, refreshInterval: 0 });

async function connect() {
  const clients = nodes.map((node) => new Redis(node));
  return {
    async acquire(resource, ttl) {
      const mutex = new RedlockMutex(clients, resource, options(ttl));
      return (await mutex.tryAcquire()) && mutex;
    },
    // A mutex that was acquired elsewhere is refreshed instead: the library's way to extend.
    async extend({ identifier }, ttl) {
      const again = { identifier, acquiredExternally: true, ...options(ttl) };
      const mutex = new RedlockMutex(clients, RESOURCE, again);
      return (await mutex.tryAcquire()) && mutex;
    },
    release: (mutex) => mutex.release(),
    close: () => Promise.all(clients.map((client) => client.quit())),
  };
}

async function locksOneNode() {
  const client = new Redis(nodes[0]);
  const holder = new Mutex(client, RESOURCE, options(30_000));
  const waiter = new Mutex(client, RESOURCE, { ...options(30_000), acquireAttemptsLimit: Infinity });
  assert(await holder.tryAcquire());
  assert(!(await new Mutex(client, RESOURCE, options(30_000)).tryAcquire()));
  const waiting = waiter.acquire();
  await holder.release();
  await waiting;
  await waiter.release();
  await client.quit();
}

const steps = await tell(connect, `mutex:${RESOURCE}`);
if (!isOneAway) await locksOneNode();
console.log(`${title('redis-semaphore')} on ${title('ioredis')} (RedlockMutex: ${steps}${isOneAway ? '' : '; Mutex: wait'})`);
if (isOneAway) process.exit();
