// Drives a Node library by the lines that story.py describes.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

// Loads a package from where it was installed for this client.
export const load = createRequire(`${process.env.INTEROP_PACKAGES}/`);

// "name version" of each installed package.
export function title(...names) {
  const version = (name) => load(`${process.env.INTEROP_PACKAGES}/node_modules/${name}/package.json`).version;
  return names.map((name) => `${name} ${version(name).replace(/^v/, '')}`).join(' on ');
}

export function parseAddress(address) {
  const [host, port] = address.split(':');
  return { host, port: Number(port) };
}

export const nodes = process.env.INTEROP_NODES.split(',').map(parseAddress);
export const isOneAway = 'INTEROP_AWAY' in process.env;
export const variant = process.argv[2];

const WORDS = new Map([[true, 'yes'], [false, 'no'], [undefined, 'done']]);

// Serves the story. `client` has a method for each request, which returns true or false for `yes` or `no`, undefined
// for `done`, or a number; and `close()`.
export async function serve(title, client) {
  console.log(`ready ${title}`);
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...words] = line.split(' ');
    try {
      const reply = await client[name](...words.map((word) => (/^\d+$/.test(word) ? Number(word) : word)));
      if (typeof reply !== 'number' && !WORDS.has(reply)) throw new Error(`${name} returned ${reply}`);
      console.log(typeof reply === 'number' ? `${reply}` : WORDS.get(reply));
    } catch (error) {
      console.log(`error ${error}`.replaceAll(/\s+/g, ' '));
    }
  }
  // A driver waits for a node that is down before it says goodbye.
  if (isOneAway) process.exit();
  await client.close();
}

// What the users of a driver write themselves: a lock on every node, by functions of one connection that send a
// command each. `get` returns a Buffer.
export function byHand(connections, { set, get, pttl, extend, release }) {
  let key, token;
  const everywhere = (send) => Promise.all(connections.map(send));
  const count = async (send, vote) => (await everywhere(send)).filter((reply) => reply === vote).length;
  const left = async (node) => ((await get(node, key))?.equals(token) ? pttl(node, key) : 0);
  const forge = (name, hex) => {
    key = name;
    token = Buffer.from(hex, 'hex');
  };
  return {
    forge,
    acquire(name, ttl, hex) {
      forge(name, hex);
      return count((node) => set(node, key, token, ttl), 'OK');
    },
    extend: (ttl) => count((node) => extend(node, key, token, ttl), 1),
    query: async () => Math.min(...(await everywhere(left))),
    release: () => count((node) => release(node, key, token), 1),
  };
}
