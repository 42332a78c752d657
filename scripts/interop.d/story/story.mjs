// The life of a lock, told through any Node library on all nodes.
//
// A library's file gives `tell` a way to connect; the story acquires, contends, extends, releases
// and expires, and looks at every node itself, over its own sockets, after each step. It knows
// nothing of the library's own return values beyond "got it" and "did not".

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export const RESOURCE = 'interop:resource';
const LONG_TTL = 30_000;
// Long enough that five writes on a busy machine fit in, short enough to wait for.
const SHORT_TTL = 800;
// How long the nodes that a library does not wait for may take to follow.
const SETTLE_MS = 5_000;
// How long a client tries for a lock that expires meanwhile.
const PATIENCE_MS = 20_000;
const POLL_MS = 5;

// Loads a package from where it was installed for this client.
export const load = createRequire(`${process.env.INTEROP_PACKAGES}/`);

// "name version" of an installed package.
export function title(name, directory = name) {
  const manifest = `${process.env.INTEROP_PACKAGES}/node_modules/${directory}/package.json`;
  return `${name} ${load(manifest).version}`;
}

export function parseAddress(address) {
  const [host, port] = address.split(':');
  return { host, port: Number(port) };
}

export const nodes = process.env.INTEROP_NODES.split(',').map(parseAddress);
// Those that serve: one may be down or in its quarantine, and then what takes time is left out.
const serving = process.env.INTEROP_SERVING.split(',').map(parseAddress);
export const isOneAway = 'INTEROP_AWAY' in process.env;

// A node seen over a bare socket, one command at a time.
class Node {
  constructor({ host, port }) {
    this.socket = net.connect(port, host);
    this.received = Buffer.alloc(0);
  }

  async ask(...words) {
    const frame = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('');
    this.socket.write(`*${words.length}\r\n${frame}`);
    const line = await this.take(this.lineEnd.bind(this));
    const rest = line.slice(1, -2);
    switch (line[0]) {
      case '$':
        if (rest === '-1') return null;
        return (await this.take(() => Number(rest) + 2)).slice(0, -2);
      case ':':
        return Number(rest);
      case '+':
        return rest;
      default:
        throw new Error(`${words}: ${line}`);
    }
  }

  lineEnd() {
    return this.received.indexOf('\r\n') < 0 ? Infinity : this.received.indexOf('\r\n') + 2;
  }

  // Takes as many bytes as `size` says, which is Infinity until that can be known.
  async take(size) {
    while (this.received.length < size()) {
      const chunk = await new Promise((resolve, reject) => {
        this.socket.once('data', resolve).once('error', reject).once('close', reject);
      });
      this.socket.removeAllListeners('data').removeAllListeners('error').removeAllListeners('close');
      this.received = Buffer.concat([this.received, chunk]);
    }
    const end = size();
    const taken = this.received.toString('latin1', 0, end);
    this.received = this.received.subarray(end);
    return taken;
  }
}

// The nodes and the one key that the story is about.
class Stage {
  constructor(key) {
    this.key = key;
    this.nodes = serving.map((address) => new Node(address));
  }

  everywhere(...words) {
    return Promise.all(this.nodes.map((node) => node.ask(...words)));
  }

  // Polls until the condition holds for the nodes' replies to a command about the key.
  async until(what, command, condition) {
    const deadline = performance.now() + SETTLE_MS;
    for (;;) {
      const replies = await this.everywhere(command, this.key);
      if (condition(replies)) return replies;
      assert(performance.now() < deadline, `${what}: ${replies}`);
      await sleep(POLL_MS);
    }
  }

  // The token that every node holds, once they agree.
  async token(step) {
    const agreed = (tokens) => tokens[0] !== null && new Set(tokens).size === 1;
    return (await this.until(`${step}: not one token on all nodes`, 'GET', agreed))[0];
  }

  // The token that a majority of the nodes holds.
  async majority() {
    const tokens = await this.everywhere('GET', this.key);
    const votes = (token) => tokens.filter((other) => other === token).length;
    const winner = tokens.find((token) => token !== null && votes(token) > tokens.length / 2);
    assert(winner, `no majority holds one lock: ${tokens}`);
    return winner;
  }

  // How many error replies each node has sent.
  async errors() {
    const stats = await Promise.all(this.nodes.map((node) => node.ask('INFO', 'stats')));
    return stats.map((stat) => /total_error_replies:(\d+)/.exec(stat)[1]);
  }

  released(step) {
    return this.until(`${step}: not released`, 'EXISTS', (found) => found.every((n) => n === 0));
  }

  close() {
    for (const node of this.nodes) node.socket.destroy();
  }
}

// Tells the story and returns the names of its steps. `connect()` makes a client with
// `acquire(resource, ttl)` (one attempt; a handle or a falsy value), `release(handle)`, `close()`
// and, where the library can, `extend(handle, ttl)`, whose handle replaces the first. A release or
// an extend of a lost lock may say so by an exception. `key` is the resource's name on the wire.
export async function tell(connect, key = RESOURCE) {
  const stage = new Stage(key);
  const [first, second] = [await connect(), await connect()];
  const steps = ['acquire', 'contend'];

  let handle = await first.acquire(RESOURCE, LONG_TTL);
  assert(handle, 'a free resource was refused');
  let token = await stage.token('acquire');
  assert(!(await second.acquire(RESOURCE, LONG_TTL)), 'two holders at once');
  // Once more, when the client has asked all that it asks a node first and some nodes do not know.
  const errors = await stage.errors();
  assert(!(await second.acquire(RESOURCE, LONG_TTL)), 'two holders at the second try');
  // A node that answers with an error has not refused but failed.
  assert.deepEqual(await stage.errors(), errors, 'the nodes refused by an error');
  assert.equal(await stage.token('contend'), token, 'the second client changed the token');

  if (first.extend) {
    steps.push('extend');
    handle = await first.extend(handle, 2 * LONG_TTL);
    assert(handle, 'not extended');
    await stage.until('not extended', 'PTTL', (ttls) => ttls.every((ttl) => ttl > LONG_TTL));
    assert.equal(await stage.token('extend'), token);
  }

  steps.push('script flush', 'release', 'acquire again');
  await stage.everywhere('SCRIPT', 'FLUSH');
  await first.release(handle);
  await stage.released('release');
  handle = await second.acquire(RESOURCE, LONG_TTL);
  assert(handle, 'a released resource was refused');
  await stage.token('acquire again');
  await second.release(handle);
  await stage.released('second release');

  // A driver waits for a node that is down before it says goodbye: the client's file ends the process instead.
  if (isOneAway) {
    stage.close();
    return steps.join(', ');
  }

  steps.push('expire', 'stale release');
  const started = performance.now();
  const stale = await first.acquire(RESOURCE, SHORT_TTL);
  assert(stale, 'a free resource was refused');
  while (!(handle = await second.acquire(RESOURCE, LONG_TTL))) {
    assert(performance.now() < started + PATIENCE_MS, 'the lock never expired');
    await sleep(POLL_MS);
  }
  // The clock of the nodes counts whole milliseconds.
  assert(performance.now() - started >= SHORT_TTL - 1, 'the lock expired too early');
  // Nodes may expire the old lock a little after the majority that the new one was won on.
  token = await stage.majority();
  await attempt(() => first.release(stale));
  if (first.extend) {
    steps.push('stale extend');
    assert(!(await attempt(() => first.extend(stale, LONG_TTL))), 'extended a lost lock');
  }
  assert.equal(await stage.majority(), token, 'a client without the lock changed it');
  await second.release(handle);
  await stage.released('last release');

  await first.close();
  await second.close();
  stage.close();
  return steps.join(', ');
}

// Runs what a client without the lock tries; an exception is its way to say no.
async function attempt(action) {
  try {
    return await action();
  } catch {
    return false;
  }
}
