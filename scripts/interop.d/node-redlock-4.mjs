// needs: npm redlock@4.2.0 ioredis@5.11.1
// node-redlock 4: every step is an EVALSHA over all keys, with EVAL on NOSCRIPT.
import { load, nodes, tell, title } from './story/story.mjs';

const Redis = load('ioredis');
const Redlock = load('redlock');

async function connect() {
  const clients = nodes.map((node) => new Redis(node));
  const redlock = new Redlock(clients, { retryCount: 0 });
  // Votes against are what contention is made of; anything else would come out of the story.
  redlock.on('clientError', () => {});
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
console.log(`node-redlock ${title('redlock').split(/ v?/)[1]} on ${title('ioredis')} (${steps})`);
