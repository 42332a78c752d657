// needs: npm simple-redis-mutex@3.0.0 redis@6.3.1
// nodes: one
// lacks: extend query token (it can only start over with the same TTL)
// has: wait
// prefix: @simple-redis-mutex:lock-
// simple-redis-mutex: SET NX PX, a release that publishes, and one subscription for all that wait.
import { load, nodes, serve, title } from './story/adapter.mjs';

const { createClient } = load('redis');
const { lock, tryLock } = load('simple-redis-mutex');

const client = createClient({ socket: nodes[0] });
client.on('error', () => {});
await client.connect();
let release;

await serve(title('simple-redis-mutex', 'redis'), {
  async acquire(key, timeout) {
    const [held, giveBack] = await tryLock(client, key, { timeout });
    if (held) release = giveBack;
    return held;
  },
  async wait(key, timeout) {
    release = await lock(client, key, { timeout, pollingInterval: null, failAfter: timeout });
    return true;
  },
  async release() {
    await release();
  },
  close: () => client.close(),
});
