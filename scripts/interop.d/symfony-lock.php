<?php
// needs: apt php-cli php-redis php-predis php-symfony-lock
// nodes: one
// lacks: token
// has: wait
// holds: zset
// each: phpredis Predis
// also: shared

// Symfony's Lock: a sorted set of holders, in scripts. On one node it is its RedisStore, on several its CombinedStore,
// which is its Redlock.

declare(strict_types=1);

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockReleasingException;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\LockInterface;
use Symfony\Component\Lock\Store\CombinedStore;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\Lock\Strategy\ConsensusStrategy;

require __DIR__ . '/story/adapter.php';
require 'Symfony/Component/Lock/autoload.php';
require 'Predis/Autoloader.php';
Predis\Autoloader::register();

final class Client
{
    private LockFactory $factory;
    private LockInterface $lock;

    public function __construct(bool $isPhpredis)
    {
        // phpredis connects when it is made: a node that is down is one that cannot be made.
        $stores = [];
        foreach (nodes() as $address) {
            $stores[] = new RedisStore($isPhpredis ? connect($address) : new Predis\Client("tcp://$address"));
        }
        $store = count($stores) > 1 ? new CombinedStore($stores, new ConsensusStrategy()) : $stores[0];
        $this->factory = new LockFactory($store);
    }

    public function acquire(string $key, int $ttl, string $token = '', bool $blocking = false): bool
    {
        $lock = $this->factory->createLock($key, $ttl / 1000, false);
        if (!$lock->acquire($blocking)) {
            return false;
        }
        $this->lock = $lock;
        return true;
    }

    public function wait(string $key, int $ttl): bool
    {
        return $this->acquire($key, $ttl, blocking: true);
    }

    public function extend(int $ttl): bool
    {
        try {
            $this->lock->refresh($ttl / 1000);
        } catch (LockConflictedException) {
            return false;
        }
        return true;
    }

    public function query(): bool
    {
        return $this->lock->isAcquired();
    }

    /** It does not say whether the lock was held. */
    public function release(): ?bool
    {
        try {
            $this->lock->release();
        } catch (LockReleasingException) {
            return false;
        }
        return null;
    }

    /** Two readers at once, and a writer after them. */
    public function shared(): bool
    {
        [$one, $two, $writer] = array_map(fn () => $this->factory->createLock('interop:shared', 30), range(1, 3));
        check('no two readers', $one->acquireRead() && $two->acquireRead());
        check('a writer beside readers', !$writer->acquire());
        $one->release();
        check('a writer beside a reader', !$writer->acquire());
        $two->release();
        check('no writer', $writer->acquire());
        check('a reader beside a writer', !$one->acquireRead());
        $writer->release();
        return true;
    }
}

$isPhpredis = $argv[1] === 'phpredis';
$version = trim(shell_exec("dpkg-query -W -f '\${Version}' php-symfony-lock") ?? '');
$driver = $isPhpredis ? 'phpredis ' . phpversion('redis') : 'Predis ' . Predis\Client::VERSION;
$store = count(nodes()) > 1 ? 'CombinedStore' : 'RedisStore';
serve("symfony/lock $version with $store on $driver", new Client($isPhpredis));
