// needs: npm redlock@4.2.0 ioredis@5.11.1
// away: down=fails quarantine=ok (ioredis asks a node that is down twenty times before it gives up)
// node-redlock 4: every step is an EVALSHA over all keys, with EVAL on NOSCRIPT.
import assert from 'node:assert/strict';
import { isOneAway, load, nodes, tell, title } from './story/story.mjs';

const Redis = load('ioredis');
const Redlock = load('redlock');

const failures = [];

async function connect() {
  const clients = nodes.map((node) => new Redis(node));
  const redlock = new Redlock(clients, { retryCount: 0 });
  // A vote against is no error.
  redlock.on('clientError', (error) => failures.push(error));
  return {
    acquire: (resource, ttl) => redlock.lock(resource, ttl).catch(refused),
    extend: (lock, ttl) => lock.extend(ttl),
    release: (lock) => lock.unlock(),
    close: () => redlock.quit(),
  };
}

function refused(error) {
  if (error.name !== 'LockError') throw error;
  return null;
}

const steps = await tell(connect);
if (!isOneAway) assert.deepEqual(failures, []);
console.log(`node-redlock ${title('redlock').split(/ v?/)[1]} on ${title('ioredis')} (${steps})`);
if (isOneAway) process.exit();
