// needs: maven org.redisson:redisson:4.7.0

import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The example of docs/examples.md. */
final class Client {
    public static void main(String... arguments) throws Exception {
        String node = Adapter.node();

        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + node);
        RedissonClient redisson = Redisson.create(config);

        // Waits up to 10 seconds. The lock is renewed until it is unlocked, or until this process dies.
        RLock lock = redisson.getLock("nightly-report");
        if (lock.tryLock(10, TimeUnit.SECONDS)) {
            try {
                System.out.println("nobody else writes the report");
            } finally {
                lock.unlock();
            }
        }
        redisson.shutdown();

        System.out.println(Adapter.title("redisson") + " as docs/examples.md shows it");
        System.exit(0);
    }
}
