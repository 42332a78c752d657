#!/usr/bin/env bash
# needs: apt redis-tools
# redis-cli: locks by hand under RESP2 and RESP3, JSON, pipe mode, and inline commands over a socket.
set -euo pipefail

IFS=, read -ra nodes <<<"$INTEROP_NODES"
node=${nodes[0]}
key=interop:resource
release="if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

cli() {
    redis-cli -h "${node%:*}" -p "${node##*:}" "$@" 2>&1
}

# Fails unless the two are equal; $1 says what they are.
same() {
    if [[ $2 != "$3" ]]; then
        printf '%s: expected %q, got %q\n' "$1" "$3" "$2"
        exit 1
    fi
}

# The life of a lock with redis-cli's options $@, in its human format.
tell_story() {
    local sha end ttl
    same 'ping' "$(cli "$@" PING)" PONG
    same 'acquire' "$(cli "$@" SET $key first NX PX 30000)" OK
    same 'contend' "$(cli "$@" SET $key second NX PX 30000)" '(nil)'
    same 'query' "$(cli "$@" GET $key)" '"first"'
    same 'foreign release' "$(cli "$@" EVAL "$release" 1 $key second)" '(integer) 0'
    sha=$(cli --raw SCRIPT LOAD "$release")
    same 'script known' "$(cli "$@" SCRIPT EXISTS "$sha")" '1) (integer) 1'
    same 'flush' "$(cli "$@" SCRIPT FLUSH)" OK
    same 'extend' "$(cli "$@" PEXPIRE $key 60000)" '(integer) 1'
    ttl=$(cli --raw PTTL $key)
    ((ttl > 30000 && ttl <= 60000)) || same 'pttl' "$ttl" 'more than 30000'
    same 'release' "$(cli "$@" EVAL "$release" 1 $key first)" '(integer) 1'
    same 'gone' "$(cli "$@" EXISTS $key)" '(integer) 0'
    same 'short lock' "$(cli "$@" SET $key first NX PX 200)" OK
    end=$((SECONDS + 10))
    until [[ $(cli "$@" set $key second px 30000 nx) == OK ]]; do
        ((SECONDS < end)) || same 'expire' 'still held' 'free again'
    done
    same 'next holder' "$(cli "$@" GET $key)" '"second"'
    same 'delete' "$(cli "$@" DEL $key)" '(integer) 1'
    same 'unknown' "$(cli "$@" NOSUCH a)" \
        "(error) ERR unknown command 'NOSUCH', with args beginning with: 'a' "
    same 'arity' "$(cli "$@" GET)" "(error) ERR wrong number of arguments for 'get' command"
    same 'syntax' "$(cli "$@" SET $key v NX XX)" '(error) ERR syntax error'
}

# Every output is human-readable although it is no terminal: --no-raw.
tell_story -2 --no-raw
tell_story -3 --no-raw

# JSON needs RESP3; maps and nulls are where the protocols differ.
same 'json ok' "$(cli --json SET $key first NX PX 30000)" '"OK"'
same 'json null' "$(cli --json SET $key second NX PX 30000)" null
same 'json list' "$(cli --json MGET $key none)" '["first",null]'
same 'json map' "$(cli --json CONFIG GET databases)" '{"databases":"16"}'

# Bytes through standard input, another database, and many commands at once.
same 'stdin' "$(printf 'a\r\nb' | cli -x SET $key:bytes)" OK
same 'bytes' "$(cli --no-raw GET $key:bytes)" '"a\r\nb"'
same 'database' "$(cli -n 3 --no-raw GET $key)" '(nil)'
loaded=$(for i in {1..1000}; do printf 'SET %s:%s v NX PX 30000\r\n' $key "$i"; done | cli --pipe)
[[ $loaded == *'errors: 0, replies: 1000'* ]] || same 'pipe' "$loaded" 'errors: 0, replies: 1000'
same 'scan' "$(cli --scan --pattern "$key:*" | sort -u | wc -l)" 1001
same 'flushdb' "$(cli FLUSHDB)" OK
[[ $(cli INFO server) == *redis_version:* ]] || same 'info' "$(cli INFO server)" 'redis_version:...'
[[ $(cli -3 HELLO 3) == *proto* ]] || same 'hello' "$(cli -3 HELLO 3)" 'a map with proto'

# The interactive mode asks for COMMAND DOCS before its first prompt.
if command -v script >/dev/null; then
    typed=$(printf 'set %s first nx px 30000\ndel %s\nquit\n' $key $key |
        TERM=dumb script -qec "redis-cli -h ${node%:*} -p ${node##*:}" /dev/null)
    [[ $typed == *OK*'(integer) 1'* ]] || same 'interactive' "$typed" '... OK ... (integer) 1'
fi

# A password: refused without it, let in with it.
node=$INTEROP_AUTH_NODE
same 'no password' "$(cli --no-raw GET $key)" '(error) NOAUTH Authentication required.'
same 'password' "$(cli --no-auth-warning -a "$INTEROP_PASSWORD" -3 PING)" PONG
[[ $(cli --no-auth-warning -a wrong GET $key) == *WRONGPASS* ]] || same 'wrong password' x WRONGPASS
node=${nodes[0]}

# Inline commands, with quotes, sent by the shell itself.
exec 3<>"/dev/tcp/${node%:*}/${node##*:}"
printf 'SET %s "a\\x00b c" NX PX 30000\r\nstrlen %s\n\r\nDEL %s\r\nQUIT\r\n' $key $key $key >&3
same 'inline' "$(tr -d '\r' <&3)" $'+OK\n:5\n:1\n+OK'

echo "$(redis-cli --version) (-2, -3, --json, -x, --pipe, --scan, -a, interactive, inline: acquire," \
    "contend, extend, foreign release, release, expire)"
