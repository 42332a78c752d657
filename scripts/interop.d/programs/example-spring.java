// needs: maven org.springframework.integration:spring-integration-redis:6.5.5 io.lettuce:lettuce-core:6.8.1.RELEASE

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/** The example of docs/examples.md. */
final class Client {
    public static void main(String... arguments) throws Exception {
        String host = Adapter.host(Adapter.node());
        int port = Adapter.port(Adapter.node());

        LettuceConnectionFactory connections = new LettuceConnectionFactory(host, port);
        connections.afterPropertiesSet();
        connections.start();
        RedisLockRegistry registry = new RedisLockRegistry(connections, "app", 30_000);
        // Whoever waits is woken by the message of whoever unlocks.
        registry.setRedisLockType(RedisLockType.PUB_SUB_LOCK);

        Lock lock = registry.obtain("nightly-report");
        if (lock.tryLock(10, TimeUnit.SECONDS)) {
            try {
                System.out.println("nobody else writes the report");
            } finally {
                lock.unlock();
            }
        }

        System.out.println(Adapter.title("spring-integration-redis", "lettuce-core") + " as docs/examples.md shows it");
        System.exit(0);
    }
}
