// node-redlock 5 on ioredis, under the contract in ../src/client/mod.rs; its packages are in BENCH_PACKAGES.
import { once } from 'node:events';
import { createRequire } from 'node:module';

const load = createRequire(`${process.env.BENCH_PACKAGES}/`);
const Redis = load('ioredis');
const { default: Redlock } = load('redlock');

const TTL_MS = 10_000;
const WARM_UP_SHARE = 2;
// The last replies are there within this time, or their node is silent.
const SETTLE_MS = 1_000;

const [addresses, inFlight, seconds] = process.argv.slice(2);
const nodes = addresses.split(',').map((address) => {
  const [host, port] = address.split(':');
  const node = new Redis({ host, port: Number(port) });
  // A node that cannot be reached is a vote against, not a reason to end.
  node.on('error', () => {});
  return node;
});
// A key that nobody holds needs no second try; one that fails is to be seen.
const redlock = new Redlock(nodes, { retryCount: 0 });

async function cycle(keys, deadline, done) {
  for (let number = 0; performance.now() < deadline; number += 1) {
    const started = performance.now();
    try {
      const lock = await redlock.acquire([`${keys}:${number}`], TTL_MS);
      done.latencies.push((performance.now() - started) * 1000);
      await lock.release();
    } catch {
      done.failures += 1;
    }
  }
}

async function work(milliseconds, phase) {
  const done = { latencies: [], failures: 0 };
  const deadline = performance.now() + milliseconds;
  const workers = Array.from({ length: Number(inFlight) }, (_, worker) =>
    cycle(`bench:${process.pid}:${phase}:${worker}`, deadline, done),
  );
  await Promise.all(workers);
  return done;
}

// Replies come in order: after these, none is outstanding.
async function settle() {
  const pongs = nodes.map((node) => node.ping().catch(() => {}));
  await Promise.race([Promise.all(pongs), new Promise((resolve) => setTimeout(resolve, SETTLE_MS))]);
}

function percentile(sorted, percent) {
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0;
}

const version = (name) => load(`./node_modules/${name}/package.json`).version.replace(/^v/, '');

await work((seconds * 1000) / WARM_UP_SHARE, 'w');
console.log('warm');
await once(process.stdin, 'data');
process.stdin.pause();
const cpu = process.cpuUsage();
const started = performance.now();
const done = await work(seconds * 1000, 'm');
const wall = (performance.now() - started) / 1000;
await settle();
const used = process.cpuUsage(cpu);
const sorted = Float64Array.from(done.latencies).sort();
const report = {
  client: `node-redlock ${version('redlock')} on ioredis ${version('ioredis')} (Node ${process.versions.node})`,
  cycles: sorted.length,
  failures: done.failures,
  wall_s: wall,
  cpu_s: (used.user + used.system) / 1e6,
  p50_us: percentile(sorted, 50),
  p99_us: percentile(sorted, 99),
};
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0));
