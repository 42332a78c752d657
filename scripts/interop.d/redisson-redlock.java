// needs: maven org.redisson:redisson:4.7.0
// away: down=ok quarantine=ok
// lacks: token extend agreement (each node knows the lock by another name)
// has: wait reenter watchdog
// holds: hash

import org.redisson.api.RedissonClient;

/** Redisson's RedLock, which needs the majority. */
final class Client {
    public static void main(String... arguments) throws Exception {
        RedissonOverAll.serve(RedissonClient::getRedLock);
    }
}
