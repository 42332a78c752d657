// needs: npm @sesamecare-oss/redlock@1.4.0 ioredis@5.11.1
// away: down=ok quarantine=ok
// lacks: token
// has: watchdog
// also: several
// The maintained fork of node-redlock: each script begins with SELECT under redis.pcall.
import assert from 'node:assert/strict';
import { load, nodes, serve, title } from './story/adapter.mjs';

const Redis = load('ioredis');
const { Redlock, ExecutionError } = load('@sesamecare-oss/redlock');

const redlock = new Redlock(nodes.map((node) => new Redis(node)), { retryCount: 0, automaticExtensionThreshold: 1_000 });
let lock, finish, finished;

async function attempt(action) {
  try {
    lock = await action();
    return true;
  } catch (error) {
    if (!(error instanceof ExecutionError)) throw error;
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

await serve(title('@sesamecare-oss/redlock', 'ioredis'), {
  several,
  acquire: (key, ttl) => attempt(() => redlock.acquire([key], ttl)),
  // Its routine runs until the release lets it end.
  watch: (key, ttl) =>
    new Promise((resolve, reject) => {
      finished = redlock.using([key], ttl, () => {
        resolve(true);
        return new Promise((end) => (finish = end));
      });
      finished.catch((error) => (error instanceof ExecutionError ? resolve(false) : reject(error)));
    }),
  extend: (ttl) => attempt(() => lock.extend(ttl)),
  query: () => Math.max(0, lock.expiration - Date.now()),
  async release() {
    if (!finish) return attempt(async () => (await lock.release(), lock));
    finish();
    finish = undefined;
    await finished;
    return true;
  },
  close: () => redlock.quit(),
});
