// needs: maven org.redisson:redisson:4.7.0
// nodes: one
// each: lock fair spin fenced write
// lacks: token extend
// has: wait reenter watchdog
// holds: hash

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's locks on one node: a hash with a count, and publish/subscribe for those that wait. */
final class Client {
    private static final long USUAL_WATCHDOG = 30_000;
    /** By their watchdog's time, which a client sets for all its locks. */
    private static final Map<Long, RedissonClient> CLIENTS = new HashMap<>();
    private static String variant;
    private static RLock lock;

    private static RLock lock(String name, long watchdog) {
        RedissonClient client = CLIENTS.computeIfAbsent(watchdog, made -> {
            Config config = new Config().setLockWatchdogTimeout(watchdog);
            config.useSingleServer().setAddress("redis://" + Adapter.node());
            return Redisson.create(config);
        });
        return switch (variant) {
            case "fair" -> client.getFairLock(name);
            case "spin" -> client.getSpinLock(name);
            case "fenced" -> client.getFencedLock(name);
            case "write" -> client.getReadWriteLock(name).writeLock();
            default -> client.getLock(name);
        };
    }

    private static Object acquire(String... words) throws InterruptedException {
        lock = lock(words[0], USUAL_WATCHDOG);
        return lock.tryLock(0, Adapter.number(words[1]), TimeUnit.MILLISECONDS);
    }

    private static Object await(String... words) {
        lock = lock(words[0], USUAL_WATCHDOG);
        lock.lock(Adapter.number(words[1]), TimeUnit.MILLISECONDS);
        return true;
    }

    private static Object watch(String... words) {
        lock = lock(words[0], Adapter.number(words[1]));
        return lock.tryLock();
    }

    private static Object release(String... words) {
        try {
            lock.unlock();
            return true;
        } catch (IllegalMonitorStateException notHeld) {
            return false;
        }
    }

    public static void main(String... arguments) throws Exception {
        variant = arguments[0];
        lock("", USUAL_WATCHDOG);
        Adapter.serve(Adapter.title("redisson"), Map.of(
                "acquire", Client::acquire,
                "wait", Client::await,
                "watch", Client::watch,
                "reenter", words -> lock.tryLock(),
                "query", words -> lock.isHeldByCurrentThread() ? lock.remainTimeToLive() : 0,
                "release", Client::release));
    }
}
