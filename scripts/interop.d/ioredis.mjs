// needs: npm ioredis@6.0.0
// each: RESP2 RESP3
// also: login
// ioredis 6, which speaks RESP3 unless told otherwise, with its own scripts: locks written by hand.
import assert from 'node:assert/strict';
import { byHand, load, nodes, parseAddress, serve, title, variant } from './story/adapter.mjs';

const { default: Redis } = load('ioredis');
const protocol = variant === 'RESP2' ? 2 : 3;
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

async function login(password) {
  const node = parseAddress(process.env.INTEROP_AUTH_NODE);
  const client = new Redis({ ...node, protocol, password, db: 3, connectionName: 'interop', retryStrategy: null });
  client.on('error', () => {});
  try {
    assert.equal(await client.set('interop:login', 'in'), 'OK');
    assert.equal(await client.client('GETNAME'), 'interop');
    const replies = await client.pipeline().get('interop:login').select(0).get('interop:login').exec();
    assert.deepEqual(replies, [[null, 'in'], [null, 'OK'], [null, null]]);
    return true;
  } finally {
    client.disconnect();
  }
}

const clients = nodes.map((node) => new Redis({ ...node, protocol, scripts }));
await serve(title('ioredis'), {
  ...byHand(clients, {
    set: (node, key, token, ttl) => node.set(key, token, 'PX', ttl, 'NX'),
    get: (node, key) => node.getBuffer(key),
    pttl: (node, key) => node.pttl(key),
    extend: (node, key, token, ttl) => node.extendLock(key, token, ttl),
    release: (node, key, token) => node.releaseLock(key, token),
  }),
  login,
  close: () => Promise.all(clients.map((client) => client.quit())),
});
