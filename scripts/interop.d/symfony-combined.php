<?php
// needs: apt php-cli php-redis php-predis php-symfony-lock
// away: down=fails quarantine=ok (phpredis raises as it connects)
// lacks: token
// has: wait
// holds: zset
// each: phpredis Predis

// Symfony's CombinedStore on all nodes.

declare(strict_types=1);

require __DIR__ . '/symfony-lock.php';
