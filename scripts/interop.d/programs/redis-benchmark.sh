#!/usr/bin/env bash
# needs: apt redis-tools
# redis-benchmark: its own tests and the lock commands, pipelined and not; any error reply fails it.
set -euo pipefail

IFS=, read -ra nodes <<<"$INTEROP_NODES"
node=${nodes[0]}
release="if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
sha=$(redis-cli -h "${node%:*}" -p "${node##*:}" SCRIPT LOAD "$release")

# Runs it with the options $@ and fails on errors, warnings and missing results.
bench() {
    local output
    output=$(redis-benchmark -h "${node%:*}" -p "${node##*:}" --csv "$@" 2>&1) || {
        printf 'redis-benchmark %s: %s\n' "$*" "$output"
        exit 1
    }
    printf '%s\n' "$output"
    if grep --quiet --ignore-case --extended-regexp 'error|warning|\bERR\b' <<<"$output"; then
        exit 1
    fi
    grep --quiet '^"' <<<"$output"
}

# Small counts: this is about replies, not about speed.
bench -n 5000 -c 20 -t ping,set,get
bench -n 20000 -c 20 -P 32 -t ping,set,get
bench -n 5000 -c 20 --threads 2 -t set,get
bench -n 5000 -c 20 -P 8 -r 1000 SET lock:__rand_int__ token NX PX 30000
bench -n 5000 -c 20 -P 8 -3 -r 1000 SET lock:__rand_int__ token NX PX 30000
bench -n 5000 -c 20 -P 8 -r 1000 EVALSHA "$sha" 1 lock:__rand_int__ token
echo "$(redis-benchmark --version) (ping, set, get, SET NX PX, EVALSHA; -P, -3, --threads: no errors)"
