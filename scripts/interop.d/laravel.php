<?php
// needs: apt php-cli php-redis php-predis php-illuminate-cache php-illuminate-redis
// nodes: one
// lacks: extend token
// has: wait
// each: phpredis predis

// Laravel's Cache::lock: SET NX EX and a release script.

declare(strict_types=1);

use Illuminate\Cache\RedisStore;
use Illuminate\Contracts\Cache\Lock;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Illuminate\Redis\RedisManager;

require __DIR__ . '/story/adapter.php';
require 'Illuminate/Redis/autoload.php';
require 'Illuminate/Cache/autoload.php';

final class Client
{
    private RedisStore $store;
    private Lock $lock;

    public function __construct(string $driver)
    {
        [$host, $port] = explode(':', nodes()[0]);
        $this->store = new RedisStore(new RedisManager(null, $driver, ['default' => compact('host', 'port')]));
    }

    /** It counts whole seconds. */
    private function lock(string $key, int $ttl): Lock
    {
        return $this->store->lock($key, max(1, intdiv($ttl, 1000)));
    }

    public function acquire(string $key, int $ttl): bool
    {
        $lock = $this->lock($key, $ttl);
        if (!$lock->get()) {
            return false;
        }
        $this->lock = $lock;
        return true;
    }

    public function wait(string $key, int $ttl): bool
    {
        $lock = $this->lock($key, $ttl)->betweenBlockedAttemptsSleepFor(20);
        try {
            $lock->block(intdiv($ttl, 1000));
        } catch (LockTimeoutException) {
            return false;
        }
        $this->lock = $lock;
        return true;
    }

    public function query(): bool
    {
        return (fn () => $this->isOwnedByCurrentProcess())->call($this->lock);
    }

    public function release(): bool
    {
        return $this->lock->release();
    }
}

$version = trim(shell_exec("dpkg-query -W -f '\${Version}' php-illuminate-cache") ?? '');
serve("laravel cache $version on {$argv[1]}", new Client($argv[1]));
