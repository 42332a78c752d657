<?php
// needs: composer malkusch/lock:3.1.1
// nodes: one
// lacks: extend query token
// has: wait
// prefix: php-malkusch-lock:

// malkusch/lock's RedisMutex: SET NX PX and a release script.

declare(strict_types=1);

use Malkusch\Lock\Exception\LockAcquireTimeoutException;
use Malkusch\Lock\Exception\LockReleaseException;
use Malkusch\Lock\Mutex\RedisMutex;

require __DIR__ . '/story/adapter.php';
require getenv('INTEROP_PACKAGES') . '/vendor/autoload.php';

final class Client
{
    private Redis $redis;
    /** What runs while the lock is held, and goes on when it is released. */
    private ?Fiber $held = null;

    public function __construct()
    {
        $this->redis = connect(nodes()[0]);
    }

    private function hold(string $key, int $ttl, float $patience): bool
    {
        $mutex = new RedisMutex($this->redis, $key, $patience, $ttl / 1000);
        $fiber = new Fiber(fn () => $mutex->synchronized(fn () => Fiber::suspend()));
        try {
            $fiber->start();
        } catch (LockAcquireTimeoutException) {
            return false;
        }
        $this->held = $fiber;
        return true;
    }

    public function acquire(string $key, int $ttl): bool
    {
        return $this->hold($key, $ttl, 0.05);
    }

    public function wait(string $key, int $ttl): bool
    {
        return $this->hold($key, $ttl, $ttl / 1000);
    }

    public function release(): bool
    {
        try {
            $this->held->resume();
        } catch (LockReleaseException) {
            return false;
        }
        return true;
    }
}

serve('malkusch/lock 3.1.1 on phpredis ' . phpversion('redis'), new Client());
