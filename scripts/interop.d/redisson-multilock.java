// needs: maven org.redisson:redisson:4.7.0
// away: down=ok quarantine=ok
// each: multi red
// lacks: token extend agreement (each node knows the lock by another name)
// has: wait reenter watchdog
// holds: hash

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's MultiLock, which needs all nodes, and its RedLock, which needs the majority. */
final class Client {
    private static final long USUAL_WATCHDOG = 30_000;
    /** One for each node, by their watchdog's time, which a client sets for all its locks. */
    private static final Map<Long, List<RedissonClient>> CLIENTS = new HashMap<>();
    private static String variant;
    private static RLock lock;
    /** What it is made of: a lock on each node. */
    private static RLock[] parts;

    private static void use(String name, long watchdog) {
        List<RedissonClient> clients = CLIENTS.computeIfAbsent(watchdog, made ->
                Adapter.NODES.stream().map(address -> {
                    Config config = new Config().setLockWatchdogTimeout(watchdog).setLazyInitialization(true);
                    config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(1);
                    return Redisson.create(config);
                }).toList());
        parts = clients.stream().map(client -> client.getLock(name)).toArray(RLock[]::new);
        RedissonClient first = clients.get(0);
        lock = variant.equals("multi") ? first.getMultiLock(parts) : first.getRedLock(parts);
    }

    private static Object acquire(String... words) throws InterruptedException {
        use(words[0], USUAL_WATCHDOG);
        return lock.tryLock(0, Adapter.number(words[1]), TimeUnit.MILLISECONDS);
    }

    private static Object await(String... words) {
        use(words[0], USUAL_WATCHDOG);
        lock.lock(Adapter.number(words[1]), TimeUnit.MILLISECONDS);
        return true;
    }

    private static Object watch(String... words) {
        use(words[0], Adapter.number(words[1]));
        return lock.tryLock();
    }

    private static Object query(String... words) {
        long left = Long.MAX_VALUE;
        for (RLock part : parts) {
            left = Math.min(left, part.isHeldByCurrentThread() ? part.remainTimeToLive() : 0);
        }
        return left;
    }

    private static Object release(String... words) {
        try {
            lock.unlock();
            // A RedLock does not look at what the nodes answer.
            return variant.equals("multi") ? true : null;
        } catch (IllegalMonitorStateException notHeld) {
            return false;
        }
    }

    public static void main(String... arguments) throws Exception {
        variant = arguments[0];
        use("", USUAL_WATCHDOG);
        Adapter.serve(Adapter.title("redisson"), Map.of(
                "acquire", Client::acquire,
                "wait", Client::await,
                "watch", Client::watch,
                "reenter", words -> lock.tryLock(),
                "query", Client::query,
                "release", Client::release));
    }
}
