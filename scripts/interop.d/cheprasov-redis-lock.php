<?php
// needs: composer cheprasov/php-redis-lock:1.0.3 cheprasov/php-redis-client:1.10.0
// nodes: one
// away: killed=fails (its driver does not connect again)
// lacks: token
// has: wait

// cheprasov/php-redis-lock: SET NX PX, and EVALSHA with EVAL on NOSCRIPT.

declare(strict_types=1);

use RedisClient\RedisClient;
use RedisLock\RedisLock;

require __DIR__ . '/story/adapter.php';
require getenv('INTEROP_PACKAGES') . '/vendor/autoload.php';
// Written for PHP 5: a deprecated line is no error of the node.
error_reporting(E_ALL & ~E_DEPRECATED);

final class Client
{
    private RedisClient $redis;
    private RedisLock $lock;

    public function __construct()
    {
        $this->redis = new RedisClient(['server' => 'tcp://' . nodes()[0], 'timeout' => 5]);
    }

    public function acquire(string $key, int $ttl, string $token = '', int $seconds = 0): bool
    {
        $lock = new RedisLock($this->redis, $key, RedisLock::FLAG_DO_NOT_THROW_EXCEPTIONS);
        if (!$lock->acquire($ttl / 1000, $seconds)) {
            return false;
        }
        $this->lock = $lock;
        return true;
    }

    public function wait(string $key, int $ttl): bool
    {
        return $this->acquire($key, $ttl, seconds: intdiv($ttl, 1000));
    }

    public function extend(int $ttl): bool
    {
        return $this->lock->update($ttl / 1000);
    }

    public function query(): bool
    {
        return $this->lock->isLocked();
    }

    public function release(): bool
    {
        return $this->lock->release();
    }
}

serve('cheprasov/php-redis-lock ' . RedisLock::VERSION, new Client());
