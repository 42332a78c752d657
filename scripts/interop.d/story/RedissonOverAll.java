import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.config.Config;

/** One of Redisson's locks that are made of a lock on each node. */
final class RedissonOverAll {
    /** Makes the lock of its parts. */
    @FunctionalInterface
    interface Maker {
        RLock make(RedissonClient client, RLock... parts);
    }

    private static final long USUAL_WATCHDOG = 30_000;
    /** One for each node, by their watchdog's time, which a client sets for all its locks. */
    private static final Map<Long, List<RedissonClient>> CLIENTS = new HashMap<>();
    private static Maker maker;
    private static RLock lock;
    /** What it is made of: a lock on each node. */
    private static RLock[] parts;

    private RedissonOverAll() {}

    private static void use(String name, long watchdog) {
        List<RedissonClient> clients = CLIENTS.computeIfAbsent(watchdog, made ->
                Adapter.NODES.stream().map(address -> {
                    Config config = new Config().setLockWatchdogTimeout(watchdog).setLazyInitialization(true);
                    config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(1);
                    return Redisson.create(config);
                }).toList());
        parts = clients.stream().map(client -> client.getLock(name)).toArray(RLock[]::new);
        lock = maker.make(clients.get(0), parts);
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
        List<Long> left = new ArrayList<>();
        for (RLock part : parts) {
            try {
                left.add(part.isHeldByCurrentThread() ? part.remainTimeToLive() : 0);
            } catch (RedisException away) {
                left.add(Long.MAX_VALUE);
            }
        }
        return Collections.min(left);
    }

    private static Object release(String... words) {
        try {
            lock.unlock();
            // A RedLock does not look at what the nodes answer.
            return lock instanceof RedissonRedLock ? null : true;
        } catch (IllegalMonitorStateException notHeld) {
            return false;
        }
    }

    static void serve(Maker itsMaker) throws Exception {
        maker = itsMaker;
        use("", USUAL_WATCHDOG);
        Adapter.serve(Adapter.title("redisson"), Map.of(
                "acquire", RedissonOverAll::acquire,
                "wait", RedissonOverAll::await,
                "watch", RedissonOverAll::watch,
                "reenter", words -> lock.tryLock(),
                "query", RedissonOverAll::query,
                "release", RedissonOverAll::release));
    }
}
