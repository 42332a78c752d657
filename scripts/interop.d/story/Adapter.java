import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** Drives a Java library by the lines that story.py describes. */
final class Adapter {
    /** The release script of the documented algorithm, for the clients that are no lock libraries. */
    private static final String RELEASE =
            "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0";

    /** The same condition before a new TTL. */
    private static final String EXTEND = "if redis.call('get',KEYS[1]) == ARGV[1] then "
            + "return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";

    static final List<String> NODES = List.of(System.getenv("INTEROP_NODES").split(","));

    private Adapter() {}

    /** What a request does with its words: a Boolean for `yes` or `no`, null for `done`, or a number. */
    @FunctionalInterface
    interface Request {
        Object reply(String... words) throws Exception;
    }

    /** A driver's connection to one node; a lock on all nodes is what its users write themselves. */
    interface Node {
        /** Sets the key where it is free, with a TTL unless that is 0. */
        boolean set(String key, byte[] value, long ttl) throws Exception;

        byte[] get(String key) throws Exception;

        long pttl(String key) throws Exception;

        long eval(String script, String key, byte[]... values) throws Exception;
    }

    /** Opens a connection, to database 3 where there is a password. */
    @FunctionalInterface
    interface Opener {
        Node open(String address, String password) throws Exception;
    }

    /** The one node, for libraries that know one only. */
    static String node() {
        return NODES.get(0);
    }

    static String host(String address) {
        return address.substring(0, address.lastIndexOf(':'));
    }

    static int port(String address) {
        return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    }

    /** The milliseconds that a word says. */
    static long number(String word) {
        return Long.parseLong(word);
    }

    /** "name version" of each library, out of its jar's name. */
    static String title(String... names) {
        List<String> titles = new ArrayList<>();
        for (String name : names) {
            for (String jar : System.getProperty("java.class.path").split("[/:]")) {
                if (jar.matches(name + "-[0-9].*\\.jar")) {
                    titles.add(name + " " + jar.substring(name.length() + 1, jar.length() - 4));
                }
            }
        }
        return String.join(" on ", titles);
    }

    /** Replies to each line until the input ends. */
    static void serve(String title, Map<String, Request> requests) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready " + title);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            System.out.println(reply(requests.get(words[0]), words).replaceAll("\\s+", " "));
        }
        // Some drivers keep threads that no close ends.
        System.exit(0);
    }

    private static String reply(Request request, String... words) {
        try {
            if (request == null) {
                return "error unknown request " + words[0];
            }
            Object value = request.reply(Arrays.copyOfRange(words, 1, words.length));
            return value == null ? "done" : value instanceof Boolean done ? done ? "yes" : "no" : value.toString();
        } catch (Exception error) {
            StringBuilder text = new StringBuilder("error");
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                text.append(' ').append(cause);
            }
            return text.toString();
        }
    }

    private interface Vote {
        boolean of(Node node) throws Exception;
    }

    private static int count(List<Node> nodes, Vote vote) throws Exception {
        int count = 0;
        for (Node node : nodes) {
            count += vote.of(node) ? 1 : 0;
        }
        return count;
    }

    /** Serves the story with a lock on every node, a command each. */
    static void serveByHand(String title, Opener opener, Map<String, Request> more) throws Exception {
        List<Node> nodes = new ArrayList<>();
        for (String address : NODES) {
            nodes.add(opener.open(address, null));
        }
        var hand = new Object() {
            String key;
            byte[] token;

            Object forge(String name, String hex) {
                key = name;
                token = HexFormat.of().parseHex(hex);
                return null;
            }
        };
        Map<String, Request> requests = new HashMap<>(Map.of(
                "forge", words -> hand.forge(words[0], words[1]),
                "acquire", words -> {
                    hand.forge(words[0], words[2]);
                    return count(nodes, node -> node.set(hand.key, hand.token, number(words[1])));
                },
                "extend", words -> count(nodes,
                        node -> node.eval(EXTEND, hand.key, hand.token, words[0].getBytes()) == 1),
                "release", words -> count(nodes, node -> node.eval(RELEASE, hand.key, hand.token) == 1),
                "query", words -> {
                    long least = Long.MAX_VALUE;
                    for (Node node : nodes) {
                        boolean isOurs = Arrays.equals(node.get(hand.key), hand.token);
                        least = Math.min(least, isOurs ? node.pttl(hand.key) : 0);
                    }
                    return least;
                },
                "login", words -> opener.open(System.getenv("INTEROP_AUTH_NODE"), words.length > 0 ? words[0] : "")
                        .set("interop:login", "in".getBytes(), 0)));
        requests.putAll(more);
        serve(title, requests);
    }
}
