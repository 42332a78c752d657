// needs: npm redlock@5.0.0-beta.2 ioredis@5.11.1
// away: down=fails quarantine=ok (ioredis asks a node that is down twenty times before it gives up)
// lacks: token
// also: several
// node-redlock 5: EVALSHA with EVAL on NOSCRIPT; a reply that is no integer is a vote against.
import assert from 'node:assert/strict';
import { isOneAway, load, nodes, serve, title } from './story/adapter.mjs';

const Redis = load('ioredis');
const { default: Redlock, ExecutionError, ResourceLockedError } = load('redlock');

const redlock = new Redlock(nodes.map((node) => new Redis(node)), { retryCount: 0 });
let lock;

// Whether the library does it. Every vote against has to say that the lock is held, or is not held any more: a node
// that fails is no node that refuses.
async function attempt(action) {
  try {
    lock = await action();
    return true;
  } catch (error) {
    if (!(error instanceof ExecutionError)) throw error;
    for (const { votesAgainst } of await Promise.all(error.attempts)) {
      for (const vote of votesAgainst.values()) {
        if (!isOneAway && !(vote instanceof ResourceLockedError)) throw vote;
      }
    }
    return false;
  }
}

// Several resources are one script over several keys: all of them or none.
async function several() {
  const both = await redlock.acquire(['interop:a', 'interop:b'], 30_000);
  assert.equal(await attempt(() => redlock.acquire(['interop:b', 'interop:c'], 30_000)), false);
  await both.release();
  const other = await redlock.acquire(['interop:b', 'interop:c'], 30_000);
  await other.release();
  return true;
}

await serve(`node-${title('redlock', 'ioredis')}`, {
  several,
  acquire: (key, ttl) => attempt(() => redlock.acquire([key], ttl)),
  extend: (ttl) => attempt(() => lock.extend(ttl)),
  query: () => Math.max(0, lock.expiration - Date.now()),
  release: () => attempt(async () => (await lock.release(), lock)),
  close: () => redlock.quit(),
});
