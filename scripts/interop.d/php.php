<?php
// needs: apt php-cli php-redis
// also: login hash pool

// What redlock-php sends, by Debian's phpredis: SET with PX and NX, and EVAL of a release script;
// also what a pooled connection sends when it is taken again.

declare(strict_types=1);

require __DIR__ . '/story/adapter.php';

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

/** Every node is asked in turn, as the library does. */
final class Adapter
{
    /** @var string[] */
    private array $addresses;
    /** @var Redis[] */
    private array $nodes;
    private string $key;
    private string $token;

    public function __construct()
    {
        $this->addresses = nodes();
        $this->nodes = array_map('connect', $this->addresses);
    }

    public function forge(string $key, string $token): void
    {
        $this->key = $key;
        $this->token = hex2bin($token);
    }

    public function acquire(string $key, int $ttl, string $token): int
    {
        $this->forge($key, $token);
        return $this->sum(fn (Redis $node) => $node->set($this->key, $this->token, ['NX', 'PX' => $ttl]));
    }

    public function extend(int $ttl): int
    {
        return $this->sum(fn (Redis $node) => $node->eval(EXTEND, [$this->key, $this->token, $ttl], 1));
    }

    public function query(): int
    {
        $left = fn (Redis $node) => $node->get($this->key) === $this->token
            ? $node->pttl($this->key)
            : $node->exists($this->key);
        return min(array_map($left, $this->nodes));
    }

    public function release(): int
    {
        return $this->sum(fn (Redis $node) => $node->eval(RELEASE, [$this->key, $this->token], 1));
    }

    public function login(?string $password = null): bool
    {
        $node = connect(getenv('INTEROP_AUTH_NODE'));
        $node->clearLastError();
        $done = ($password === null || $node->auth($password)) && $node->select(3)
            && $node->set('interop:login', 'in');
        check((string) $node->getLastError(), $done);
        return true;
    }

    /** EVALSHA and what phpredis does about an unknown script: it tells, and the caller loads it. */
    public function hash(): bool
    {
        $node = $this->nodes[0];
        $hash = sha1(RELEASE);
        $node->script('flush');
        check('ran an unknown hash', $node->evalSha(sha1('return 7'), [], 0) === false);
        check('wrong error', str_starts_with($node->getLastError(), 'NOSCRIPT'));
        check('wrong hash', $node->script('load', RELEASE) === $hash);
        check('not known', $node->script('exists', $hash) === [1]);
        check('not run', $node->evalSha($hash, [$this->key, 'nobody'], 1) === 0);
        return true;
    }

    /** A pooled connection is checked with ECHO when it is taken again. */
    public function pool(): bool
    {
        for ($round = 0; $round < 3; $round++) {
            $node = connect($this->addresses[0], 'pconnect');
            check('no PONG', $node->ping() === true && $node->echo("a\0b\r\n") === "a\0b\r\n");
            $node->close();
        }
        return true;
    }

    /** phpredis turns an error into `false`, which is also how a held lock looks. */
    private function sum(callable $ask): int
    {
        $sum = 0;
        foreach ($this->nodes as $node) {
            $node->clearLastError();
            $sum += (int) $ask($node);
            check('an error: ' . $node->getLastError(), $node->getLastError() === null);
        }
        return $sum;
    }
}

serve(sprintf('php %s with phpredis %s, as redlock-php sends it', PHP_VERSION, phpversion('redis')), new Adapter());
