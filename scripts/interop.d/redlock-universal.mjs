// needs: npm redlock-universal@0.8.5 ioredis@5.11.1 redis@6.3.1
// away: down=fails quarantine=ok (its drivers connect before the first lock, to every node)
// lacks: token
// each: ioredis node-redis
// also: batch
// redlock-universal with both drivers: SET PX NX, SCRIPT LOAD first and EVALSHA after it.
import assert from 'node:assert/strict';
import { load, nodes, serve, title, variant } from './story/adapter.mjs';

const Redis = load('ioredis');
const { createClient } = load('redis');
const universal = load('redlock-universal');

const drivers = {
  ioredis: async (node) => {
    const client = new Redis(node);
    await new Promise((resolve, reject) => client.once('ready', resolve).once('error', reject));
    return { adapter: new universal.IoredisAdapter(client), close: () => client.quit() };
  },
  'node-redis': async (node) => {
    const client = createClient({ socket: node });
    client.on('error', (error) => console.error(error));
    await client.connect();
    return { adapter: new universal.NodeRedisAdapter(client), close: () => client.close() };
  },
};

const connections = await Promise.all(nodes.map(drivers[variant]));
const adapters = connections.map(({ adapter }) => adapter);
let lock, handle;

// What only its adapters offer: locks on one node, in batches, extended and inspected by script.
async function batch() {
  const [adapter] = adapters;
  const keys = ['interop:a', 'interop:b'];
  const both = await adapter.batchSetNX(keys, ['one', 'two'], 30_000);
  assert.deepEqual([both.success, both.acquiredCount], [true, 2]);
  const refused = await adapter.batchSetNX(['interop:c', ...keys], ['x', 'y', 'z'], 30_000);
  assert.deepEqual([refused.success, refused.failedKey], [false, keys[0]]);
  const seen = await adapter.inspect(keys[1]);
  assert.equal(seen.value, 'two');
  assert(seen.ttl > 0 && seen.ttl <= 30_000);
  assert.equal(await adapter.inspect('interop:c'), null);
  assert.equal((await adapter.atomicExtend(keys[0], 'one', 1, 60_000)).resultCode, 1);
  assert.equal((await adapter.atomicExtend(keys[0], 'other', 1, 60_000)).resultCode, -1);
  assert.equal((await adapter.atomicExtend(keys[0], 'one', 90_000, 60_000)).resultCode, 0);
  assert.equal(await adapter.delIfMatch(keys[0], 'other'), false);
  assert.equal(await adapter.delIfMatch(keys[0], 'one'), true);
  assert.equal(await adapter.delIfMatch(keys[1], 'two'), true);
  assert.equal(await adapter.ping(), 'PONG');
  return true;
}

await serve(`${title('redlock-universal', 'ioredis')} and ${title('redis')}`, {
  batch,
  async acquire(key, ttl) {
    lock = universal.createRedlock({ adapters, key, ttl, retryAttempts: 0 });
    try {
      handle = await lock.acquire();
      return true;
    } catch (error) {
      if (!(error instanceof universal.LockAcquisitionError)) throw error;
      return false;
    }
  },
  extend: (ttl) => lock.extend(handle, ttl),
  query: () => lock.isLocked(handle.key),
  release: () => lock.release(handle),
  close: () => Promise.all(connections.map(({ close }) => close())),
});
