// needs: maven net.javacrumbs.shedlock:shedlock-provider-redis-spring:6.10.0 org.springframework.data:spring-data-redis:3.5.7 io.lettuce:lettuce-core:6.8.1.RELEASE
// nodes: one
// lacks: token query
// prefix: job-lock:interop:

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** ShedLock on Spring's driver, with the setting by which it releases and extends only what it still holds. */
final class Client {
    private static LockProvider provider;
    private static SimpleLock lock;

    private static boolean keep(Optional<SimpleLock> had) {
        lock = had.orElse(lock);
        return had.isPresent();
    }

    private static Object acquire(String... words) {
        var ttl = Duration.ofMillis(Adapter.number(words[1]));
        return keep(provider.lock(new LockConfiguration(Instant.now(), words[0], ttl, Duration.ZERO)));
    }

    private static Object extend(String... words) {
        try {
            return keep(lock.extend(Duration.ofMillis(Adapter.number(words[0])), Duration.ZERO));
        } catch (IllegalStateException unlocked) {
            return false;
        }
    }

    private static Object release(String... words) {
        lock.unlock();
        return null;
    }

    public static void main(String... arguments) throws Exception {
        var connections = new LettuceConnectionFactory(Adapter.host(Adapter.node()), Adapter.port(Adapter.node()));
        connections.afterPropertiesSet();
        connections.start();
        provider = new RedisLockProvider.Builder(connections).environment("interop").safeUpdate(true).build();
        Adapter.serve(Adapter.title("shedlock-provider-redis-spring", "lettuce-core"), Map.of(
                "acquire", Client::acquire, "extend", Client::extend, "release", Client::release));
    }
}
