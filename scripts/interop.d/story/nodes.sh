# shellcheck shell=bash disable=SC2034,SC2154
# Nodes for the clients: starts servers on free loopback ports, asks them single questions without
# any client program, and stops exactly what was started. Sourced by scripts/interop, whose settings it
# uses: the directory $cache and the limit $ready_seconds.

node_pids=()

# Sends the inline command $2 to node $1 and prints the first line of the reply.
ask_node() {
    local reply
    exec {node_socket}<>"/dev/tcp/${1%:*}/${1##*:}" || return
    printf '%s\r\n' "$2" >&"$node_socket"
    IFS= read -r -t 5 reply <&"$node_socket" || reply=
    exec {node_socket}>&-
    printf '%s\n' "${reply%$'\r'}"
}

# Sends node $1 the commands on standard input, and waits until they are done.
fill_node() {
    local line
    exec {node_socket}<>"/dev/tcp/${1%:*}/${1##*:}" || return
    {
        cat
        printf 'ECHO filled\r\n'
    } >&"$node_socket"
    while IFS= read -r -t 10 line <&"$node_socket" && [[ $line != filled* ]]; do :; done
    exec {node_socket}>&-
    [[ $line == filled* ]]
}

# Waits until node $1, process $2, answers; fails when the process ends or the time is over.
await_node() {
    local until=$((SECONDS + ready_seconds)) reply
    while ((SECONDS < until)) && kill -0 "$2" 2>/dev/null; do
        reply=$(ask_node "$1" PING 2>/dev/null || true)
        if [[ $reply == +PONG || $reply == -NOAUTH* || $reply == -LOADING* ]]; then
            # A server that lost its port to another one ends at once: it must still be there.
            kill -0 "$2" 2>/dev/null
            return
        fi
        sleep 0.02
    done
    return 1
}

# Starts a server, log name $1, command line in the other words, {port} being replaced by a free
# port; the address is left in $started_node. A port that is taken costs only another try.
start_node() {
    local name=$1 port pid attempt log=$cache/logs/$1.log
    shift
    for attempt in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 12000))
        if ask_node "127.0.0.1:$port" PING >/dev/null 2>&1; then
            continue
        fi
        # Servers that keep files must not put them into the repository.
        (cd "$cache/logs" && exec "${@//\{port\}/$port}") >"$log" 2>&1 &
        pid=$!
        if await_node "127.0.0.1:$port" "$pid"; then
            node_pids+=("$pid")
            started_node=127.0.0.1:$port
            return
        fi
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    echo "interop: $name did not answer on a free port after $attempt tries: $*" >&2
    tail -n 10 "$log" >&2
    return 1
}

stop_nodes() {
    local pid
    for pid in ${node_pids[@]+"${node_pids[@]}"}; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in ${node_pids[@]+"${node_pids[@]}"}; do
        wait "$pid" 2>/dev/null || true
    done
}
