// needs: npm ioredis@6.0.0
// ioredis 6, which speaks RESP3 unless told otherwise, with its own scripts: locks written by hand.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { load, nodes, parseAddress, tell, title } from './story/story.mjs';

const { default: Redis } = load('ioredis');
const scripts = {
  releaseLock: {
    numberOfKeys: 1,
    lua: "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
  },
  extendLock: {
    numberOfKeys: 1,
    lua: "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0",
  },
};

async function connect(protocol) {
  const clients = nodes.map((node) => new Redis({ ...node, protocol, scripts }));
  const everywhere = (send) => Promise.all(clients.map(send));
  const majority = (replies, vote) =>
    replies.filter((reply) => reply === vote).length > replies.length / 2;
  const release = ({ resource, token }) => everywhere((node) => node.releaseLock(resource, token));
  return {
    async acquire(resource, ttl) {
      const token = randomBytes(20);
      const set = (node) => node.set(resource, token, 'PX', ttl, 'NX');
      if (majority(await everywhere(set), 'OK')) return { resource, token };
      await release({ resource, token });
      return null;
    },
    async extend({ resource, token }, ttl) {
      const extend = (node) => node.extendLock(resource, token, ttl);
      return majority(await everywhere(extend), 1) && { resource, token };
    },
    release,
    close: () => everywhere((node) => node.quit()),
  };
}

async function logsIn(protocol) {
  const node = parseAddress(process.env.INTEROP_AUTH_NODE);
  const password = process.env.INTEROP_PASSWORD;
  const client = new Redis({ ...node, protocol, password, db: 3, connectionName: 'interop' });
  assert.equal(await client.set('interop:login', 'in'), 'OK');
  assert.equal(await client.client('GETNAME'), 'interop');
  const replies = await client.pipeline().get('interop:login').select(0).get('interop:login').exec();
  assert.deepEqual(replies, [[null, 'in'], [null, 'OK'], [null, null]]);
  await client.quit();
  for (const wrong of [{ password: 'wrong' }, {}]) {
    const refused = new Redis({ ...node, protocol, ...wrong, retryStrategy: null });
    refused.on('error', () => {});
    await assert.rejects(refused.get('interop:login'));
    refused.disconnect();
  }
}

let steps;
for (const protocol of [2, 3]) {
  steps = await tell(() => connect(protocol));
  await logsIn(protocol);
}
console.log(`${title('ioredis')} (RESP2 and RESP3: ${steps}, binary token, AUTH)`);
