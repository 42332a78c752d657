// needs: npm redlock@5.0.0-beta.2 ioredis@5.11.1
// away: down=fails quarantine=ok (ioredis asks a node that is down twenty times before it gives up)
// node-redlock 5: EVALSHA with EVAL on NOSCRIPT; a reply that is no integer is a vote against.
import assert from 'node:assert/strict';
import { isOneAway, load, nodes, RESOURCE, tell, title } from './story/story.mjs';

const Redis = load('ioredis');
const { default: Redlock, ExecutionError, ResourceLockedError } = load('redlock');

function open() {
  return new Redlock(nodes.map((node) => new Redis(node)), { retryCount: 0 });
}

async function connect() {
  const redlock = open();
  return {
    acquire: (resource, ttl) => redlock.acquire([resource], ttl).catch(refused),
    extend: (lock, ttl) => lock.extend(ttl),
    release: (lock) => lock.release(),
    close: () => redlock.quit(),
  };
}

async function refused(error) {
  if (!(error instanceof ExecutionError)) throw error;
  // Every vote against has to say that the lock is held: a node that fails is no node that refuses.
  for (const attempt of await Promise.all(error.attempts)) {
    for (const vote of attempt.votesAgainst.values()) {
      if (!isOneAway && !(vote instanceof ResourceLockedError)) throw vote;
    }
  }
  return null;
}

// Several resources are one script over several keys: all of them or none.
async function locksSeveralResources() {
  const redlock = open();
  const both = await redlock.acquire([`${RESOURCE}:a`, `${RESOURCE}:b`], 30_000);
  assert.equal(await redlock.acquire([`${RESOURCE}:b`, `${RESOURCE}:c`], 30_000).catch(refused), null);
  await both.release();
  const other = await redlock.acquire([`${RESOURCE}:b`, `${RESOURCE}:c`], 30_000);
  await other.release();
  await redlock.quit();
}

const steps = await tell(connect);
if (!isOneAway) await locksSeveralResources();
console.log(
  `node-redlock ${title('redlock').split(/ v?/)[1]} on ${title('ioredis')} (${steps}${isOneAway ? '' : ', several resources'})`,
);
if (isOneAway) process.exit();
