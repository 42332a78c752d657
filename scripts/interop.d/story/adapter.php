<?php

// Drives a PHP library by the lines that story.py describes.

declare(strict_types=1);

function check(string $what, bool $condition): void
{
    if (!$condition) {
        throw new Exception($what);
    }
}

/** @return string[] HOST:PORT of every node */
function nodes(): array
{
    return explode(',', getenv('INTEROP_NODES'));
}

/** A connection of phpredis. */
function connect(string $address, string $method = 'connect'): Redis
{
    [$host, $port] = explode(':', $address);
    $redis = new Redis();
    $redis->$method($host, (int) $port, 5.0);
    return $redis;
}

/**
 * Serves the story. The client has a method for each request, which returns a boolean for `yes` or `no`, null for
 * `done`, or a number.
 */
function serve(string $title, object $client): void
{
    echo "ready $title\n";
    while (($line = fgets(STDIN)) !== false) {
        $words = explode(' ', rtrim($line, "\n"));
        $request = array_shift($words);
        try {
            $reply = $client->$request(...array_map(fn ($word) => preg_match('/^\d{1,9}$/', $word) ? (int) $word : $word, $words));
            $reply = match (true) {
                is_bool($reply) => $reply ? 'yes' : 'no',
                default => $reply ?? 'done',
            };
        } catch (Throwable $error) {
            $reply = 'error ' . strtr(get_class($error) . ' ' . $error->getMessage(), "\r\n", '  ');
        }
        echo "$reply\n";
    }
}
