// needs: npm redis@6.3.1
// each: RESP2 RESP3
// also: login
// node-redis 6, which speaks RESP3 unless told otherwise, with its own scripts: locks by hand.
import assert from 'node:assert/strict';
import { byHand, load, nodes, parseAddress, serve, title, variant } from './story/adapter.mjs';

const { createClient, defineScript, RESP_TYPES } = load('redis');
const RESP = variant === 'RESP2' ? 2 : 3;

function script(SCRIPT) {
  return defineScript({
    SCRIPT,
    NUMBER_OF_KEYS: 1,
    parseCommand(parser, key, ...values) {
      parser.pushKey(key);
      parser.push(...values);
    },
    transformReply: (reply) => reply,
  });
}

const scripts = {
  releaseLock: script("return redis.call('get',KEYS[1]) == ARGV[1] and redis.call('del',KEYS[1]) or 0"),
  extendLock: script(
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0",
  ),
};

async function open(options) {
  const client = createClient({ scripts, RESP, ...options });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const bytes = (client) => client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });

async function login(password) {
  const socket = { ...parseAddress(process.env.INTEROP_AUTH_NODE), reconnectStrategy: false };
  const client = await open({ socket, password, database: 3, name: 'interop' });
  assert.equal(await client.clientGetName(), 'interop');
  assert.deepEqual(await client.configGet('databases'), { databases: '16' });
  assert.equal((await client.clientInfo()).name, 'interop');
  assert.equal(await client.set('interop:login', 'in'), 'OK');
  assert.deepEqual(await bytes(client).get('interop:login'), Buffer.from('in'));
  await client.close();
  return true;
}

const clients = await Promise.all(nodes.map((socket) => open({ socket })));
await serve(`node-${title('redis')}`, {
  ...byHand(clients, {
    set: (node, key, token, ttl) => node.set(key, token, { condition: 'NX', expiration: { type: 'PX', value: ttl } }),
    get: (node, key) => bytes(node).get(key),
    pttl: (node, key) => node.pTTL(key),
    extend: (node, key, token, ttl) => node.extendLock(key, token, String(ttl)),
    release: (node, key, token) => node.releaseLock(key, token),
  }),
  login,
  close: () => Promise.all(clients.map((client) => client.close())),
});
