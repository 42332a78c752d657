// needs: npm redlock-universal@0.8.5 ioredis@5.11.1 redis@6.3.1
// away: down=fails quarantine=ok (its drivers connect before the first lock, to every node)
// redlock-universal with both drivers: SET PX NX, SCRIPT LOAD first and EVALSHA after it.
import assert from 'node:assert/strict';
import { isOneAway, load, nodes, RESOURCE, tell, title } from './story/story.mjs';

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
    client.on('error', (error) => console.log(error));
    await client.connect();
    return { adapter: new universal.NodeRedisAdapter(client), close: () => client.close() };
  },
};

async function connect(driver) {
  const connections = await Promise.all(nodes.map(driver));
  const adapters = connections.map(({ adapter }) => adapter);
  return {
    adapters,
    async acquire(key, ttl) {
      const lock = universal.createRedlock({ adapters, key, ttl, retryAttempts: 0 });
      try {
        return { lock, handle: await lock.acquire() };
      } catch (error) {
        if (!(error instanceof universal.LockAcquisitionError)) throw error;
        return null;
      }
    },
    async extend({ lock, handle }, ttl) {
      return (await lock.extend(handle, ttl)) && { lock, handle };
    },
    release: ({ lock, handle }) => lock.release(handle),
    close: () => Promise.all(connections.map(({ close }) => close())),
  };
}

// What only its adapters offer: locks on one node, in batches, extended and inspected by script.
async function locksInBatches({ adapters: [adapter] }) {
  const keys = [`${RESOURCE}:a`, `${RESOURCE}:b`];
  const batch = await adapter.batchSetNX(keys, ['one', 'two'], 30_000);
  assert.deepEqual([batch.success, batch.acquiredCount], [true, 2]);
  const refused = await adapter.batchSetNX([`${RESOURCE}:c`, ...keys], ['x', 'y', 'z'], 30_000);
  assert.deepEqual([refused.success, refused.failedKey], [false, keys[0]]);
  const seen = await adapter.inspect(keys[1]);
  assert.equal(seen.value, 'two');
  assert(seen.ttl > 0 && seen.ttl <= 30_000);
  assert.equal(await adapter.inspect(`${RESOURCE}:c`), null);
  assert.equal((await adapter.atomicExtend(keys[0], 'one', 1, 60_000)).resultCode, 1);
  assert.equal((await adapter.atomicExtend(keys[0], 'other', 1, 60_000)).resultCode, -1);
  assert.equal((await adapter.atomicExtend(keys[0], 'one', 90_000, 60_000)).resultCode, 0);
  assert.equal(await adapter.delIfMatch(keys[0], 'other'), false);
  assert.equal(await adapter.delIfMatch(keys[0], 'one'), true);
  assert.equal(await adapter.delIfMatch(keys[1], 'two'), true);
  assert.equal(await adapter.ping(), 'PONG');
}

let steps;
for (const driver of Object.values(drivers)) {
  steps = await tell(() => connect(driver));
  if (isOneAway) continue;
  const client = await connect(driver);
  await locksInBatches(client);
  await client.close();
}
const version = title('redlock-universal');
console.log(`${version} on ${title('ioredis')} and node-${title('redis')} (${steps}${isOneAway ? '' : ', batch, inspect'})`);
if (isOneAway) process.exit();
