// needs: npm redis-semaphore@5.8.0 ioredis@5.11.1
// away: down=fails quarantine=ok (ioredis asks a node that is down twenty times before it gives up)
// lacks: token
// has: wait watchdog
// prefix: semaphore:
// holds: zset
// each: RedlockSemaphore RedlockMultiSemaphore
// also: one
// redis-semaphore's semaphores, on all nodes with room for one holder, and on one node with room for more: a sorted
// set of holders, in scripts.
import assert from 'node:assert/strict';
import { load, nodes, serve, title, variant } from './story/adapter.mjs';

const Redis = load('ioredis');
const semaphores = load('redis-semaphore');

const clients = nodes.map((node) => new Redis(node));
// Of a semaphore for three a holder of two leaves no room for another one.
const room = variant === 'RedlockSemaphore' ? [1] : [3, 2];
let key, semaphore;

// Without its refreshing timer the story decides when a lock is extended.
const options = (lockTimeout) => ({ lockTimeout, acquireAttemptsLimit: 1, refreshInterval: 0 });

function take(name, ttl, more) {
  key = name;
  semaphore = new semaphores[variant](clients, key, ...room, { ...options(ttl), ...more });
  return semaphore.tryAcquire();
}

// On one node: two of three holders get in, and the third does when one of them leaves.
async function one() {
  const [kind, limits] = variant === 'RedlockSemaphore' ? ['Semaphore', [2]] : ['MultiSemaphore', [5, 2]];
  const holders = [1, 2, 3].map(() => new semaphores[kind](clients[0], 'interop:one', ...limits, options(30_000)));
  assert(await holders[0].tryAcquire());
  assert(await holders[1].tryAcquire());
  assert(!(await holders[2].tryAcquire()));
  await holders[0].release();
  assert(await holders[2].tryAcquire());
  await Promise.all(holders.map((holder) => holder.release()));
  return true;
}

await serve(title('redis-semaphore', 'ioredis'), {
  one,
  acquire: (name, ttl) => take(name, ttl),
  wait: (name, ttl) => take(name, ttl, { acquireAttemptsLimit: Infinity }),
  watch: (name, ttl) => take(name, ttl, { refreshInterval: ttl / 4 }),
  // A semaphore that was acquired elsewhere is refreshed instead: the library's way to extend.
  extend: (ttl) => take(key, ttl, { identifier: semaphore.identifier, acquiredExternally: true }),
  query: () => semaphore.isAcquired,
  release: () => semaphore.release(),
  close: () => Promise.all(clients.map((client) => client.quit())),
});
