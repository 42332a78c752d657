// needs: npm redis@6.3.1
// node-redis 6, which speaks RESP3 unless told otherwise, with its own scripts: locks by hand.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { load, nodes, parseAddress, RESOURCE, tell, title } from './story/story.mjs';

const { createClient, defineScript, RESP_TYPES } = load('redis');

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
  const client = createClient({ scripts, ...options });
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function connect(RESP) {
  const clients = await Promise.all(nodes.map((socket) => open({ socket, RESP })));
  const everywhere = (send) => Promise.all(clients.map(send));
  const majority = (replies, vote) =>
    replies.filter((reply) => reply === vote).length > replies.length / 2;
  const release = (token) => everywhere((node) => node.releaseLock(RESOURCE, token));
  return {
    async acquire(resource, ttl) {
      const token = randomBytes(20);
      const options = { condition: 'NX', expiration: { type: 'PX', value: ttl } };
      const set = (node) => node.set(resource, token, options);
      if (majority(await everywhere(set), 'OK')) return token;
      await release(token);
      return null;
    },
    async extend(token, ttl) {
      const extend = (node) => node.extendLock(RESOURCE, token, String(ttl));
      return majority(await everywhere(extend), 1) && token;
    },
    release,
    close: () => everywhere((node) => node.close()),
  };
}

async function logsIn(RESP) {
  const socket = { ...parseAddress(process.env.INTEROP_AUTH_NODE), reconnectStrategy: false };
  const password = process.env.INTEROP_PASSWORD;
  const client = await open({ socket, RESP, password, database: 3, name: 'interop' });
  assert.equal(await client.clientGetName(), 'interop');
  const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  const token = randomBytes(20);
  assert.equal(await client.set('interop:login', token), 'OK');
  assert.deepEqual(await bytes.get('interop:login'), token);
  assert.deepEqual(await client.configGet('databases'), { databases: '16' });
  assert.equal((await client.clientInfo()).name, 'interop');
  await client.close();
  await assert.rejects(open({ socket, RESP, password: 'wrong' }), /WRONGPASS/);
}

let steps;
for (const version of [2, 3]) {
  steps = await tell(() => connect(version));
  await logsIn(version);
}
console.log(`node-${title('redis')} (RESP2 and RESP3: ${steps}, binary token, AUTH)`);
