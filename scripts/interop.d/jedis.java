// needs: maven redis.clients:jedis:7.5.3
// each: RESP2 RESP3
// also: login multi

import java.util.Map;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.params.SetParams;

/** Jedis by hand, through its pool: SET NX PX, EVAL, and a transaction. */
final class Client implements Adapter.Node {
    private static RedisProtocol protocol;
    private final RedisClient jedis;

    private Client(RedisClient jedis) {
        this.jedis = jedis;
    }

    private static Client open(String address, String password) {
        var config = DefaultJedisClientConfig.builder().protocol(protocol);
        if (password != null) {
            config.database(3);
        }
        if (password != null && !password.isEmpty()) {
            config.password(password);
        }
        var node = new HostAndPort(Adapter.host(address), Adapter.port(address));
        return new Client(RedisClient.builder().hostAndPort(node).clientConfig(config.build()).build());
    }

    @Override
    public boolean set(String key, byte[] value, long ttl) {
        SetParams params = SetParams.setParams().nx();
        return "OK".equals(jedis.set(key.getBytes(), value, ttl == 0 ? params : params.px(ttl)));
    }

    @Override
    public byte[] get(String key) {
        return jedis.get(key.getBytes());
    }

    @Override
    public long pttl(String key) {
        return jedis.pttl(key);
    }

    @Override
    public long eval(String script, String key, byte[]... values) {
        byte[][] words = new byte[values.length + 1][];
        words[0] = key.getBytes();
        System.arraycopy(values, 0, words, 1, values.length);
        return (Long) jedis.eval(script.getBytes(), 1, words);
    }

    /** A lock, its content and its end in one transaction, and one that another client has spoilt. */
    private static Object multi(String... words) {
        try (RedisClient jedis = open(Adapter.NODES.get(0), null).jedis) {
            try (var transaction = jedis.multi()) {
                var set = transaction.set("interop:multi", "token", SetParams.setParams().nx().px(60_000));
                var get = transaction.get("interop:multi");
                var deleted = transaction.del("interop:multi");
                transaction.exec();
                if (!set.get().equals("OK") || !get.get().equals("token") || deleted.get() != 1) {
                    return false;
                }
            }
            try (var transaction = jedis.transaction(false)) {
                transaction.watch("interop:multi");
                jedis.set("interop:multi", "another's");
                transaction.multi();
                transaction.del("interop:multi");
                return transaction.exec() == null && jedis.del("interop:multi") == 1;
            }
        }
    }

    public static void main(String... arguments) throws Exception {
        protocol = RedisProtocol.valueOf(arguments[0]);
        Adapter.serveByHand(Adapter.title("jedis"), Client::open, Map.of("multi", Client::multi));
    }
}
