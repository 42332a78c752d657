// needs: maven org.springframework.integration:spring-integration-redis:6.5.5 io.lettuce:lettuce-core:6.8.1.RELEASE
// nodes: one
// each: SPIN_LOCK PUB_SUB_LOCK
// lacks: token extend query
// has: wait reenter watchdog
// prefix: interop:
// also: queue

import java.util.ArrayList;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** Spring Integration's RedisLockRegistry, by the TTL that it sets for all its locks. */
final class Client {
    private static final Map<Long, RedisLockRegistry> REGISTRIES = new HashMap<>();
    private static LettuceConnectionFactory connections;
    private static RedisLockType type;
    private static Lock lock;

    private static RedisLockRegistry registry(long ttl) {
        var registry = new RedisLockRegistry(connections, "interop", ttl);
        registry.setRedisLockType(type);
        return registry;
    }

    private static RedisLockRegistry registry(String ttl) {
        return REGISTRIES.computeIfAbsent(Adapter.number(ttl), Client::registry);
    }

    private static Object acquire(String... words) {
        lock = registry(words[1]).obtain(words[0]);
        return lock.tryLock();
    }

    private static Object await(String... words) {
        lock = registry(words[1]).obtain(words[0]);
        lock.lock();
        return true;
    }

    private static Object watch(String... words) {
        var renewals = new ThreadPoolTaskScheduler();
        renewals.initialize();
        registry(words[1]).setRenewalTaskScheduler(renewals);
        return acquire(words);
    }

    private static Object release(String... words) {
        try {
            lock.unlock();
            return true;
        } catch (ConcurrentModificationException | IllegalStateException notHeld) {
            return false;
        }
    }

    /** Three processes that wait get the lock one after another. */
    private static Object queue(String... words) throws Exception {
        Lock held = registry(30_000).obtain("interop:queue");
        held.lock();
        var threads = Executors.newCachedThreadPool();
        List<Future<Boolean>> waiting = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            waiting.add(threads.submit(() -> {
                Lock own = registry(30_000).obtain("interop:queue");
                if (!own.tryLock(8, TimeUnit.SECONDS)) {
                    return false;
                }
                Thread.sleep(100);
                own.unlock();
                return true;
            }));
        }
        held.unlock();
        boolean have = true;
        for (Future<Boolean> one : waiting) {
            have &= one.get();
        }
        return have;
    }

    public static void main(String... arguments) throws Exception {
        type = RedisLockType.valueOf(arguments[0]);
        connections = new LettuceConnectionFactory(Adapter.host(Adapter.node()), Adapter.port(Adapter.node()));
        connections.afterPropertiesSet();
        connections.start();
        Adapter.serve(Adapter.title("spring-integration-redis", "lettuce-core"), Map.of(
                "acquire", Client::acquire,
                "wait", Client::await,
                "watch", Client::watch,
                "reenter", words -> lock.tryLock(),
                "queue", Client::queue,
                "release", Client::release));
    }
}
