package org.redisson;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.Protocol;
import org.testcontainers.containers.ContainerState;
import org.testcontainers.containers.GenericContainer;

/**
 * Comes before Redisson's class of this name, from which its tests take their servers: here these are processes, started by
 * the command line in the property `server`, in which {port} stands for the port. What needs a cluster, Sentinel or
 * replication is skipped.
 */
public class RedisDockerTest {
    protected static final String NOTIFY_KEYSPACE_EVENTS = "--notify-keyspace-events";
    protected static final String MAXMEMORY_POLICY = "--maxmemory-policy";
    protected static final Protocol protocol = Protocol.RESP2;
    private static final Server SERVER = new Server();
    protected static RedissonClient redisson;
    protected static RedissonClient redissonCluster;

    static {
        SERVER.start();
        redisson = createInstance();
        Runtime.getRuntime().addShutdownHook(new Thread(SERVER::stop));
    }

    /** A server, empty at each start, which keeps its port. */
    private static final class Server extends GenericContainer<Server> {
        private static final long START_SECONDS = 20;
        private final String[] parameters;
        private final int port;
        private Process process;

        Server(String... parameters) {
            super("none");
            this.parameters = parameters;
            try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                port = free.getLocalPort();
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void start() {
            List<String> command = new ArrayList<>();
            for (String word : System.getProperty("server").split(" ")) {
                command.add(word.replace("{port}", "" + port).replace("{empty}", ""));
            }
            command.addAll(List.of(parameters));
            try {
                process = new ProcessBuilder(command)
                        .directory(Files.createTempDirectory("conformance").toFile())
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
                long end = System.nanoTime() + START_SECONDS * 1_000_000_000;
                while (!listens()) {
                    if (!process.isAlive() || System.nanoTime() > end) {
                        throw new IllegalStateException("not started: " + String.join(" ", command));
                    }
                    Thread.sleep(20);
                }
            } catch (IOException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }

        private boolean listens() {
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
                return socket.isConnected();
            } catch (IOException notYet) {
                return false;
            }
        }

        @Override
        public void stop() {
            if (process != null) {
                process.destroy();
                process.onExit().join();
            }
        }

        @Override
        public void close() {
            stop();
        }

        @Override
        public boolean isRunning() {
            return process != null && process.isAlive();
        }

        @Override
        public Integer getFirstMappedPort() {
            return port;
        }

        @Override
        public Integer getMappedPort(int unused) {
            return port;
        }
    }

    protected static GenericContainer<?> createContainer(String... parameters) {
        return new Server(parameters);
    }

    protected void restart(GenericContainer<?> server) {
        server.stop();
        server.start();
    }

    protected static Config createConfig(GenericContainer<?> server) {
        Config config = new Config();
        config.setProtocol(protocol);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + server.getFirstMappedPort());
        return config;
    }

    protected static Config createConfig() {
        return createConfig(SERVER);
    }

    public static RedissonClient createInstance() {
        return Redisson.create(createConfig());
    }

    protected void testWithParams(Consumer<RedissonClient> test, String... parameters) {
        try (Server server = new Server(parameters)) {
            server.start();
            RedissonClient client = Redisson.create(createConfig(server));
            test.accept(client);
            client.shutdown();
        }
    }

    protected void testTwoDatabase(BiConsumer<RedissonClient, RedissonClient> test) {
        Config other = createConfig();
        other.useSingleServer().setDatabase(1);
        RedissonClient second = Redisson.create(other);
        test.accept(redisson, second);
        second.shutdown();
    }

    private static void skip(String need) {
        Assumptions.abort("needs " + need);
    }

    protected static void testInCluster(Consumer<RedissonClient> test) {
        skip("a cluster");
    }

    protected void withNewCluster(BiConsumer<List<ContainerState>, RedissonClient> test) {
        skip("a cluster");
    }

    protected void withSentinel(BiConsumer<List<GenericContainer<?>>, Config> test, int replicas) {
        skip("Sentinel");
    }

    @BeforeEach
    public void beforeEach() {
        redisson.getKeys().flushall();
    }
}
