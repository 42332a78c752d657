<?php
// needs: apt php-cli php-predis php-symfony-lock
// The example of docs/examples.md.

declare(strict_types=1);

use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

require 'Symfony/Component/Lock/autoload.php';
require 'Predis/Autoloader.php';
Predis\Autoloader::register();

$node = explode(',', getenv('INTEROP_NODES'))[0];

$factory = new LockFactory(new RedisStore(new Predis\Client("tcp://$node")));
$lock = $factory->createLock('nightly-report', 30);
// Waits until the lock is free.
$lock->acquire(true);
try {
    echo "nobody else writes the report\n";
    $lock->refresh();
} finally {
    $lock->release();
}

$version = trim(shell_exec("dpkg-query -W -f '\${Version}' php-symfony-lock") ?? '');
echo "symfony/lock $version as docs/examples.md shows it\n";
