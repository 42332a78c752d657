<?php
// needs: composer ronnylt/redlock-php:1.0.1
// away: down=fails quarantine=fails (phpredis raises as it connects, and what a node that loads replies)
// lacks: extend query token
// has: wait

// redlock-php on all nodes: SET NX PX and EVAL of a release script.

declare(strict_types=1);

require __DIR__ . '/story/adapter.php';
// Its class is not where its own composer.json says.
require getenv('INTEROP_PACKAGES') . '/vendor/ronnylt/redlock-php/src/RedLock.php';
// Written for PHP 5: a deprecated line is no error of the node.
error_reporting(E_ALL & ~E_DEPRECATED);

final class Client
{
    /** @var array */
    private array $lock;

    private function try(string $key, int $ttl, int $tries): bool
    {
        $servers = array_map(fn ($address) => [...explode(':', $address), 5.0], nodes());
        $servers = array_map(fn ($server) => [$server[0], (int) $server[1], $server[2]], $servers);
        $this->manager = new RedLock($servers, 20, $tries);
        $lock = $this->manager->lock($key, $ttl);
        if (!$lock) {
            return false;
        }
        $this->lock = $lock;
        return true;
    }

    public ?RedLock $manager = null;

    public function acquire(string $key, int $ttl): bool
    {
        return $this->try($key, $ttl, 1);
    }

    public function wait(string $key, int $ttl): bool
    {
        return $this->try($key, $ttl, intdiv($ttl, 20));
    }

    /** It does not say whether the lock was held. */
    public function release(): void
    {
        $this->manager->unlock($this->lock);
    }
}

serve('redlock-php 1.0.1 on phpredis ' . phpversion('redis'), new Client());
