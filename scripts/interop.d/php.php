<?php
// needs: apt php-cli php-redis

// What redlock-php sends, by Debian's phpredis: SET with PX and NX, and EVAL of a release script;
// also what a pooled connection sends when it is taken again, and a login.

declare(strict_types=1);

const RESOURCE = 'interop:resource';
const LONG_TTL = 30_000;
const SHORT_TTL = 800;
const PATIENCE_SECONDS = 20;
const RELEASE = '
    if redis.call("GET", KEYS[1]) == ARGV[1] then
        return redis.call("DEL", KEYS[1])
    else
        return 0
    end
';
const EXTEND = '
    if redis.call("GET", KEYS[1]) == ARGV[1] then
        return redis.call("PEXPIRE", KEYS[1], ARGV[2])
    else
        return 0
    end
';

function check(string $what, bool $condition): void
{
    if (!$condition) {
        fwrite(STDERR, "$what\n");
        exit(1);
    }
}

function connect(string $address, string $method = 'connect'): Redis
{
    [$host, $port] = explode(':', $address);
    $redis = new Redis();
    $redis->$method($host, (int) $port, 5.0);
    return $redis;
}

/** What a node has answered; phpredis turns an error into `false`, which is also how a held lock looks. */
function answered(Redis $node, callable $ask): mixed
{
    $node->clearLastError();
    $answer = $ask();
    check('an error: ' . $node->getLastError(), $node->getLastError() === null);
    return $answer;
}

/** A lock on all nodes; every node is asked in turn, as the library does. */
final class Redlock
{
    /** @var Redis[] */
    public array $nodes;

    public function __construct()
    {
        $this->nodes = array_map('connect', explode(',', getenv('INTEROP_NODES')));
    }

    public function lock(int $ttl): ?string
    {
        $token = random_bytes(20);
        $set = fn (Redis $node) => answered($node, fn () => $node->set(RESOURCE, $token, ['NX', 'PX' => $ttl]));
        if (count(array_filter($this->nodes, $set)) > count($this->nodes) / 2) {
            return $token;
        }
        $this->unlock($token);
        return null;
    }

    public function unlock(string $token): int
    {
        return $this->count(RELEASE, $token);
    }

    public function extend(string $token, int $ttl): int
    {
        return $this->count(EXTEND, $token, (string) $ttl);
    }

    private function count(string $script, string ...$values): int
    {
        $run = fn (Redis $node) => answered($node, fn () => $node->eval($script, [RESOURCE, ...$values], 1));
        return array_sum(array_map($run, $this->nodes));
    }
}

function tell(): void
{
    $first = new Redlock();
    $second = new Redlock();
    $all = count($first->nodes);
    $token = $first->lock(LONG_TTL);
    check('a free resource was refused', $token !== null);
    foreach ($first->nodes as $node) {
        check('not on all nodes', $node->get(RESOURCE) === $token);
    }
    check('two holders at once', $second->lock(LONG_TTL) === null);
    check('a stranger released', $second->unlock('stranger') === 0);
    check('not extended', $first->extend($token, 2 * LONG_TTL) === $all);
    check('a stranger extended', $first->extend('stranger', LONG_TTL) === 0);
    foreach ($first->nodes as $node) {
        check('wrong TTL', $node->pttl(RESOURCE) > LONG_TTL);
        $node->script('flush');
    }
    check('not released', $first->unlock($token) === $all);
    check('still there', $first->nodes[0]->exists(RESOURCE) === 0);

    $started = hrtime(true);
    $stale = $first->lock(SHORT_TTL);
    check('a released resource was refused', $stale !== null);
    while (($token = $second->lock(LONG_TTL)) === null) {
        check('the lock never expired', hrtime(true) - $started < PATIENCE_SECONDS * 1e9);
        usleep(5_000);
    }
    check('the lock expired too early', hrtime(true) - $started >= SHORT_TTL * 1e6);
    check('released what was lost', $first->unlock($stale) === 0);
    check('not released at the end', $second->unlock($token) > $all / 2);
}

/** EVALSHA and what phpredis does about an unknown script: it tells, and the caller loads it. */
function runsByHash(): void
{
    $node = connect(explode(',', getenv('INTEROP_NODES'))[0]);
    $hash = sha1(RELEASE);
    $node->script('flush');
    check('ran an unknown hash', $node->evalSha(sha1('return 7'), [], 0) === false);
    check('wrong error', str_starts_with($node->getLastError(), 'NOSCRIPT'));
    check('wrong hash', $node->script('load', RELEASE) === $hash);
    check('not known', $node->script('exists', $hash) === [1]);
    check('not run', $node->evalSha($hash, [RESOURCE, 'nobody'], 1) === 0);
}

/** A pooled connection is checked with ECHO when it is taken again. */
function reusesConnections(): void
{
    $address = explode(',', getenv('INTEROP_NODES'))[0];
    for ($round = 0; $round < 3; $round++) {
        $node = connect($address, 'pconnect');
        check('no PONG', $node->ping() === true && $node->echo("a\0b\r\n") === "a\0b\r\n");
        $node->close();
    }
}

function logsIn(): void
{
    $address = getenv('INTEROP_AUTH_NODE');
    foreach ([null, 'wrong'] as $wrong) {
        $node = connect($address);
        try {
            $wrong === null ? $node->get(RESOURCE) : $node->auth($wrong);
            check('let in', str_starts_with((string) $node->getLastError(), 'NOAUTH'));
        } catch (RedisException $refusal) {
            $text = $refusal->getMessage();
            check("strange refusal: $text", preg_match('/^(NOAUTH|WRONGPASS)/', $text) === 1);
        }
    }
    $node = connect($address);
    check('not let in', $node->auth(getenv('INTEROP_PASSWORD')) && $node->select(3));
    check('not set', $node->set('interop:login', 'in'));
}

tell();
runsByHash();
reusesConnections();
logsIn();
$versions = sprintf('php %s with phpredis %s', PHP_VERSION, phpversion('redis'));
echo "$versions, as redlock-php sends it (SET PX NX, EVAL, EVALSHA: acquire, contend, ",
    'foreign release, extend, script flush, release, expire, stale release, binary token, ',
    "pooled ECHO, AUTH)\n";
