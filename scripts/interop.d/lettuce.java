// needs: maven io.lettuce:lettuce-core:7.7.0.RELEASE
// each: RESP2 RESP3
// also: login multi

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.ProtocolVersion;
import java.util.Map;

/** Lettuce by hand: SET NX PX, EVAL, and a transaction. */
final class Client implements Adapter.Node {
    private static final int TRIES = 20;
    private static ProtocolVersion protocol;
    private static final RedisClient CLIENT = RedisClient.create();
    private final RedisCommands<byte[], byte[]> commands;

    private Client(RedisCommands<byte[], byte[]> commands) {
        this.commands = commands;
    }

    private static Client open(String address, String password) {
        CLIENT.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
        var uri = RedisURI.builder().withHost(Adapter.host(address)).withPort(Adapter.port(address));
        if (password != null) {
            uri.withDatabase(3);
        }
        if (password != null && !password.isEmpty()) {
            uri.withPassword(password.toCharArray());
        }
        return new Client(connect(uri.build()));
    }

    /** A node that refuses at once has closed before Lettuce looks for what it said, now and then: it is asked again. */
    private static RedisCommands<byte[], byte[]> connect(RedisURI uri) {
        for (int left = TRIES; ; left--) {
            try {
                return CLIENT.connect(ByteArrayCodec.INSTANCE, uri).sync();
            } catch (RedisConnectionException error) {
                if (left == 1 || !(error.getCause() instanceof IllegalStateException)) {
                    throw error;
                }
            }
        }
    }

    @Override
    public boolean set(String key, byte[] value, long ttl) {
        SetArgs options = SetArgs.Builder.nx();
        return "OK".equals(commands.set(key.getBytes(), value, ttl == 0 ? options : options.px(ttl)));
    }

    @Override
    public byte[] get(String key) {
        return commands.get(key.getBytes());
    }

    @Override
    public long pttl(String key) {
        return commands.pttl(key.getBytes());
    }

    @Override
    public long eval(String script, String key, byte[]... values) {
        return commands.<Long>eval(script, ScriptOutputType.INTEGER, new byte[][] {key.getBytes()}, values);
    }

    /** A lock, its content and its end in one transaction, and one that another client has spoilt. */
    private static Object multi(String... words) {
        var first = open(Adapter.NODES.get(0), null);
        var second = open(Adapter.NODES.get(0), null);
        byte[] key = "interop:multi".getBytes();
        first.commands.multi();
        first.set("interop:multi", "token".getBytes(), 60_000);
        first.commands.get(key);
        first.commands.del(key);
        var done = first.commands.exec();
        if (done.wasDiscarded() || !done.get(0).equals("OK") || !done.get(2).equals(1L)) {
            return false;
        }
        first.commands.watch(key);
        second.set("interop:multi", "another's".getBytes(), 1000);
        first.commands.multi();
        first.commands.del(key);
        return first.commands.exec().wasDiscarded() && second.commands.del(key) == 1;
    }

    public static void main(String... arguments) throws Exception {
        protocol = ProtocolVersion.valueOf(arguments[0]);
        Adapter.serveByHand(Adapter.title("lettuce-core"), Client::open, Map.of("multi", Client::multi));
    }
}
