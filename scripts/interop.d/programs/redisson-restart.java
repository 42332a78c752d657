// needs: maven org.redisson:redisson:4.7.0

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisException;
import org.redisson.config.Config;

/** Redisson's lock over the restarts of its nodes, which are killed while the watchdog renews it. docs/restart.md tells of it. */
final class Client {
    private static final TimeUnit MS = TimeUnit.MILLISECONDS;
    /** Redisson renews its locks every third of it, and tries a renewal that failed again after a second or two. */
    private static final long WATCHDOG = 9000;
    private static final long LEASE = 30_000;
    /** After a restart Redisson needs some seconds to connect and to try again what was refused. */
    private static final long SOON = 30_000;
    private static final int SKIPPED = 77;
    private static final String BINARY = System.getenv("INTEROP_BINARY");
    private static final List<Node> NODES = new ArrayList<>();
    private static final List<RedissonClient> CLIENTS = new ArrayList<>();

    private static final Map<String, Callable<Void>> STORIES = new LinkedHashMap<>();

    static {
        STORIES.put("the watchdog goes on while one of five nodes is in quarantine", Client::oneOfFive);
        STORIES.put("a lock that the only node forgot is had by nobody before its end", Client::forgotten);
        STORIES.put("with --durability always the watchdog goes on after the restart", Client::kept);
        STORIES.put("a RedLock whose nodes restart one after another has one holder only where they keep it", Client::oneByOne);
        STORIES.put("what was tried while the node was down is not done later", Client::down);
    }

    /** A node of its own, which is killed and comes back. */
    private static final class Node {
        private final List<String> command;
        private final int port;
        private final Path directory;
        private Process process;

        Node(String... more) throws Exception {
            try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                port = free.getLocalPort();
            }
            directory = Files.createTempDirectory("redisson-restart");
            command = new ArrayList<>(List.of(BINARY, "serve", "--bind", "127.0.0.1", "--port", "" + port));
            command.addAll(List.of("--dir", directory.toString()));
            command.addAll(List.of(more));
            NODES.add(this);
            start("--first-start");
        }

        void start(String... first) throws Exception {
            List<String> words = new ArrayList<>(command);
            words.addAll(List.of(first));
            process = new ProcessBuilder(words)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            eventually(() -> !ping().isEmpty(), "does not answer");
        }

        void kill() {
            process.destroyForcibly().onExit().join();
        }

        void restart() throws Exception {
            kill();
            start();
        }

        String ping() {
            return ask("PING");
        }

        /** The first line of its reply; nothing while it is down. */
        String ask(String command) {
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
                socket.getOutputStream().write((command + "\r\n").getBytes());
                return new BufferedReader(new InputStreamReader(socket.getInputStream())).readLine();
            } catch (IOException down) {
                return "";
            }
        }

        boolean serves() {
            return ping().equals("+PONG");
        }

        void end() {
            kill();
            try (Stream<Path> files = Files.walk(directory)) {
                files.sorted((a, b) -> b.compareTo(a)).forEach(file -> file.toFile().delete());
            } catch (IOException error) {
                System.out.println(directory + " is left: " + error);
            }
        }
    }

    private static RedissonClient client(Node node) {
        Config config = new Config().setLockWatchdogTimeout(WATCHDOG);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + node.port).setConnectionMinimumIdleSize(1);
        RedissonClient client = Redisson.create(config);
        CLIENTS.add(client);
        return client;
    }

    private static RLock lock(Node node) {
        return client(node).getLock("invoice");
    }

    private static RLock redLock(List<Node> nodes) {
        return new RedissonRedLock(nodes.stream().map(Client::lock).toArray(RLock[]::new));
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void eventually(Callable<Boolean> condition, String what) throws Exception {
        for (long end = System.nanoTime() + SOON * 1_000_000; !condition.call(); Thread.sleep(20)) {
            check(System.nanoTime() < end, what);
        }
    }

    /** Another client asks again and again, for longer than the lock would last if nobody renewed it. */
    private static void refused(RLock other) throws Exception {
        for (long end = System.nanoTime() + WATCHDOG * 3 / 2 * 1_000_000; System.nanoTime() < end; Thread.sleep(50)) {
            check(!other.tryLock(0, LEASE, MS), "two holders");
        }
    }

    /** A client that waits for the lock; done at the time when it has it. */
    private static Future<Long> waits(RLock other) {
        CompletableFuture<Long> had = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                other.lock(LEASE, MS);
                had.complete(System.nanoTime());
                other.unlock();
            } catch (Throwable failure) {
                had.completeExceptionally(failure);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return had;
    }

    private static List<Node> five(String... more) throws Exception {
        List<Node> nodes = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            nodes.add(new Node(more));
        }
        return nodes;
    }

    private static Void oneOfFive() throws Exception {
        List<Node> nodes = five();
        RLock first = redLock(nodes);
        RLock second = redLock(nodes);
        check(first.tryLock(), "not had");
        Node last = nodes.get(4);
        last.restart();
        check(last.ping().startsWith("-LOADING"), "no quarantine: " + last.ping());
        refused(second);
        eventually(last::serves, "the quarantine does not end");
        check(!second.tryLock(0, LEASE, MS), "two holders after the quarantine");
        first.unlock();
        check(second.tryLock(0, LEASE, MS), "not had after the release");
        second.unlock();
        return null;
    }

    private static Void forgotten() throws Exception {
        Node node = new Node();
        RLock first = lock(node);
        check(first.tryLock(), "not had");
        Future<Long> waiting = waits(lock(node));
        Thread.sleep(WATCHDOG);
        check(first.isHeldByCurrentThread() && !waiting.isDone(), "not renewed");
        long killed = System.nanoTime();
        node.restart();
        check(node.ping().startsWith("-LOADING"), "no quarantine: " + node.ping());
        // It was renewed a third of its time before, at the earliest.
        long least = WATCHDOG * 2 / 3 * 1_000_000;
        check(waiting.get(SOON, MS) - killed >= least, "had before the end of the lock that was forgotten");
        check(node.serves(), "had in the quarantine");
        try {
            first.unlock();
        } catch (IllegalMonitorStateException lost) {
            return null;
        }
        throw new AssertionError("the first client was not told that its lock is lost");
    }

    private static Void kept() throws Exception {
        Node node = new Node("--durability", "always");
        RLock first = lock(node);
        check(first.tryLock(), "not had");
        Future<Long> waiting = waits(lock(node));
        eventually(() -> node.ask("PUBSUB CHANNELS").equals("*1"), "nobody waits");
        node.restart();
        check(node.serves(), "a quarantine");
        refused(lock(node));
        check(first.isHeldByCurrentThread(), "not renewed after the restart");
        check(!waiting.isDone(), "does not wait any longer: " + waiting);
        first.unlock();
        check(waiting.get(SOON, MS) > 0, "not had after the release");
        return null;
    }

    /** It does not look whether a majority still renews it. */
    private static Void oneByOne() throws Exception {
        for (boolean areKept : new boolean[] {false, true}) {
            List<Node> nodes = areKept ? five("--durability", "always") : five();
            RLock first = redLock(nodes);
            RLock second = redLock(nodes);
            check(first.tryLock(), "not had");
            for (Node node : nodes.subList(0, 3)) {
                node.restart();
                eventually(node::serves, "the quarantine does not end");
            }
            check(second.tryLock(0, LEASE, MS) != areKept, areKept ? "two holders" : "docs/restart.md says otherwise");
            first.unlock();
        }
        return null;
    }

    private static Void down() throws Exception {
        Node node = new Node();
        RLock lock = lock(node);
        node.kill();
        try {
            lock.tryLock(WATCHDOG, LEASE, MS);
            throw new AssertionError("no error while the node is down");
        } catch (RedisException refused) {
            node.start();
        }
        eventually(node::serves, "the quarantine does not end");
        check(!lock.isLocked(), "acquired by a request of before");
        return null;
    }

    public static void main(String... arguments) {
        if (!System.getenv("INTEROP_SERVER").equals("locknode")) {
            System.out.println("other servers have no quarantine");
            System.exit(SKIPPED);
        }
        int failed = 0;
        for (var story : STORIES.entrySet()) {
            try {
                story.getValue().call();
            } catch (Exception | AssertionError failure) {
                failed++;
                System.out.println("failed: " + story.getKey());
                failure.printStackTrace(System.out);
            }
        }
        CLIENTS.forEach(client -> client.shutdown(0, SOON, MS));
        NODES.forEach(Node::end);
        System.out.println(Adapter.title("redisson") + " over restarts (" + String.join("; ", STORIES.keySet()) + ")");
        System.exit(Math.min(failed, 1));
    }
}
