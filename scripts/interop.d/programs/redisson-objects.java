// needs: maven org.redisson:redisson:4.7.0

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.redisson.Redisson;
import org.redisson.api.ExpiredObjectListener;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RScript;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.api.redisnode.RedisNodes;
import org.redisson.client.RedisException;
import org.redisson.config.Config;

/** What Redisson has besides locks that exclude, and what is special to one kind of lock, between two clients of one node. */
final class Client {
    private static final TimeUnit MS = TimeUnit.MILLISECONDS;
    /** Nobody who waits sees anything for so long. */
    private static final long PAUSE = 200;
    /** Whoever waits has what it waits for by then, on a busy machine too. */
    private static final long SOON = 5000;
    private static final long LEASE = 30_000;
    private static final RedissonClient FIRST = client();
    private static final RedissonClient SECOND = client();
    private static final ExecutorService THREADS = Executors.newCachedThreadPool();

    private static final Map<String, Callable<Void>> BEHAVIOURS = new LinkedHashMap<>();

    static {
        BEHAVIOURS.put("semaphore", Client::semaphore);
        BEHAVIOURS.put("permits that expire", Client::permits);
        BEHAVIOURS.put("latch", Client::latch);
        BEHAVIOURS.put("fencing token", Client::fenced);
        BEHAVIOURS.put("readers and a writer", Client::readWrite);
        BEHAVIOURS.put("fair order", Client::fair);
        BEHAVIOURS.put("several names at once", Client::several);
        BEHAVIOURS.put("non-reentrant", Client::nonReentrant);
        BEHAVIOURS.put("forced unlock wakes", Client::forced);
        BEHAVIOURS.put("wait of a lock that expires", Client::expired);
        BEHAVIOURS.put("told of expiry", Client::told);
        BEHAVIOURS.put("a key of another type", Client::anotherType);
        // Redis refuses the release for memory, and the one renewal that Redisson tries while a script runs.
        if (!System.getenv("INTEROP_SERVER").equals("redis")) {
            BEHAVIOURS.put("released without memory", Client::withoutMemory);
            BEHAVIOURS.put("renewed beside an endless script", Client::besideScript);
        }
    }

    private static RedissonClient client() {
        return client(LEASE);
    }

    private static RedissonClient client(long watchdog) {
        Config config = new Config().setLockWatchdogTimeout(watchdog);
        config.useSingleServer().setAddress("redis://" + Adapter.node());
        return Redisson.create(config);
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** Starts to wait for something, which is not there yet. */
    private static <T> Future<T> waits(Callable<T> what) throws Exception {
        Future<T> waiting = THREADS.submit(what);
        try {
            waiting.get(PAUSE, MS);
        } catch (TimeoutException waits) {
            return waiting;
        }
        throw new AssertionError("did not wait");
    }

    private static Callable<Boolean> lock(RLock lock) {
        return () -> {
            lock.lock(LEASE, MS);
            return true;
        };
    }

    private static Void semaphore() throws Exception {
        RSemaphore first = FIRST.getSemaphore("interop:semaphore");
        RSemaphore second = SECOND.getSemaphore("interop:semaphore");
        check(first.trySetPermits(2) && !second.trySetPermits(3), "permits set twice");
        check(first.tryAcquire() && second.tryAcquire(), "two of two permits");
        check(!first.tryAcquire() && first.availablePermits() == 0, "a third of two permits");
        Future<Boolean> waiting = waits(() -> second.tryAcquire(SOON, MS));
        first.release();
        check(waiting.get(SOON, MS), "not woken");
        first.release(2);
        check(second.drainPermits() == 2, "not all back");
        return null;
    }

    private static Void permits() throws Exception {
        RPermitExpirableSemaphore first = FIRST.getPermitExpirableSemaphore("interop:permits");
        RPermitExpirableSemaphore second = SECOND.getPermitExpirableSemaphore("interop:permits");
        check(first.trySetPermits(1), "permits not set");
        String permit = first.tryAcquire(0, 2 * PAUSE, MS);
        check(permit != null && second.tryAcquire(0, LEASE, MS) == null, "two of one permit");
        check(first.updateLeaseTime(permit, 3 * PAUSE, MS), "not extended");
        Future<String> waiting = waits(() -> second.tryAcquire(SOON, LEASE, MS));
        String next = waiting.get(SOON, MS);
        check(next != null, "not had after the expiry");
        check(!first.tryRelease(permit), "an expired permit was given back");
        check(second.tryRelease(next) && first.availablePermits() == 1, "not given back");
        return null;
    }

    private static Void latch() throws Exception {
        RCountDownLatch first = FIRST.getCountDownLatch("interop:latch");
        RCountDownLatch second = SECOND.getCountDownLatch("interop:latch");
        check(first.trySetCount(2) && !second.trySetCount(3), "count set twice");
        Future<Boolean> waiting = waits(() -> second.await(SOON, MS));
        first.countDown();
        check(first.getCount() == 1 && !waiting.isDone(), "open after one of two");
        first.countDown();
        check(waiting.get(SOON, MS) && second.getCount() == 0, "not open after two");
        return null;
    }

    private static Void fenced() {
        var first = FIRST.getFencedLock("interop:fenced");
        var second = SECOND.getFencedLock("interop:fenced");
        Long token = first.tryLockAndGetToken(0, LEASE, MS);
        check(token != null && second.tryLockAndGetToken(0, LEASE, MS) == null, "two holders");
        first.unlock();
        Long next = second.tryLockAndGetToken(0, LEASE, MS);
        check(next != null && next > token && second.getToken().equals(next), "tokens do not rise");
        second.unlock();
        return null;
    }

    private static Void readWrite() throws Exception {
        RReadWriteLock first = FIRST.getReadWriteLock("interop:read-write");
        RReadWriteLock second = SECOND.getReadWriteLock("interop:read-write");
        check(first.readLock().tryLock(0, LEASE, MS) && second.readLock().tryLock(0, LEASE, MS), "not two readers");
        check(!first.writeLock().tryLock(0, LEASE, MS), "a writer beside a reader");
        first.readLock().unlock();
        Future<Boolean> waiting = waits(lock(first.writeLock()));
        second.readLock().unlock();
        check(waiting.get(SOON, MS) && !second.readLock().tryLock(0, LEASE, MS), "a reader beside a writer");
        check(first.writeLock().forceUnlock(), "not forced");
        check(second.writeLock().tryLock(0, LEASE, MS) && second.readLock().tryLock(0, LEASE, MS), "a writer may not read");
        second.writeLock().unlock();
        check(first.readLock().tryLock(0, LEASE, MS), "not a reader after its writing");
        first.readLock().unlock();
        second.readLock().unlock();
        check(!second.readLock().isLocked(), "not free");
        return null;
    }

    private static Void fair() throws Exception {
        RLock held = FIRST.getFairLock("interop:fair");
        held.lock(LEASE, MS);
        List<Integer> order = new ArrayList<>();
        List<Future<Void>> waiting = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            int mine = number;
            RLock lock = (number % 2 == 0 ? FIRST : SECOND).getFairLock("interop:fair");
            waiting.add(waits(() -> {
                lock.lock(LEASE, MS);
                order.add(mine);
                lock.unlock();
                return null;
            }));
        }
        held.unlock();
        for (Future<Void> one : waiting) {
            one.get(SOON, MS);
        }
        check(order.equals(List.of(0, 1, 2, 3)), "had in the order " + order);
        return null;
    }

    private static Void several() throws Exception {
        RLock both = FIRST.getMultiLock("interop:group", List.of("a", "b"));
        RLock other = SECOND.getMultiLock("interop:group", List.of("b", "c"));
        check(both.tryLock(0, LEASE, MS) && !other.tryLock(0, LEASE, MS), "one name in two locks");
        Future<Boolean> waiting = waits(() -> {
            other.lock(LEASE, MS);
            other.unlock();
            return true;
        });
        both.unlock();
        check(waiting.get(SOON, MS), "not had after the release");
        return null;
    }

    private static Void nonReentrant() throws Exception {
        RLock lock = FIRST.getNonReentrantLock("interop:non-reentrant");
        check(lock.tryLock(0, LEASE, MS), "not had");
        try {
            lock.tryLock(0, LEASE, MS);
        } catch (IllegalMonitorStateException heldAlready) {
            lock.unlock();
            return null;
        }
        throw new AssertionError("entered twice");
    }

    private static Void forced() throws Exception {
        RLock held = FIRST.getLock("interop:forced");
        held.lock(LEASE, MS);
        Future<Boolean> waiting = waits(lock(SECOND.getLock("interop:forced")));
        check(SECOND.getLock("interop:forced").forceUnlock() && waiting.get(SOON, MS), "not woken");
        check(held.forceUnlock(), "not free again");
        return null;
    }

    private static Void expired() throws Exception {
        FIRST.getLock("interop:expired").lock(3 * PAUSE, MS);
        check(waits(lock(SECOND.getLock("interop:expired"))).get(SOON, MS), "not had after the expiry");
        check(SECOND.getLock("interop:expired").forceUnlock(), "not had");
        return null;
    }

    private static Void told() throws Exception {
        FIRST.getRedisNodes(RedisNodes.SINGLE).getInstance().setConfig("notify-keyspace-events", "Ex");
        RLock lock = SECOND.getLock("interop:told");
        CompletableFuture<String> told = new CompletableFuture<>();
        lock.addListener((ExpiredObjectListener) told::complete);
        FIRST.getLock("interop:told").lock(PAUSE, MS);
        check(told.get(SOON, MS).equals("interop:told"), "told of another name");
        return null;
    }

    private static Void anotherType() {
        FIRST.getBucket("interop:typed").set("text", Duration.ofMinutes(1));
        RLock lock = FIRST.getLock("interop:typed");
        try {
            lock.tryLock();
            throw new AssertionError("had at a string");
        } catch (RedisException error) {
            check(error.getMessage().contains("WRONGTYPE"), error.getMessage());
        }
        check(SECOND.getBucket("interop:typed").get().equals("text") && lock.forceUnlock(), "not as it was");
        check(lock.tryLock() && lock.forceUnlock(), "not free after the forced unlock");
        return null;
    }

    private static Void withoutMemory() {
        var node = FIRST.getRedisNodes(RedisNodes.SINGLE).getInstance();
        String limit = node.getConfig("maxmemory").get("maxmemory");
        RLock held = FIRST.getLock("interop:memory");
        check(held.tryLock() && held.tryLock(), "not had");
        node.setConfig("maxmemory", "1");
        try {
            SECOND.getLock("interop:other").tryLock();
            throw new AssertionError("had beyond maxmemory");
        } catch (RedisException error) {
            check(error.getMessage().contains("maxmemory"), error.getMessage());
            held.unlock();
            check(held.isLocked(), "free after one of two releases");
            held.unlock();
            check(!SECOND.getLock("interop:memory").isLocked(), "not released");
            check(!SECOND.getLock("interop:other").isLocked(), "half a lock");
        } finally {
            node.setConfig("maxmemory", limit);
        }
        return null;
    }

    private static Void besideScript() throws Exception {
        long watchdog = 900;
        RedissonClient third = client(watchdog);
        RLock held = third.getLock("interop:renewed");
        check(held.tryLock(), "not had");
        var endless = SECOND.getScript().evalAsync(RScript.Mode.READ_ONLY, "while true do end", RScript.ReturnType.VALUE);
        for (long end = System.nanoTime() + 3 * watchdog * 1_000_000; System.nanoTime() < end; Thread.sleep(PAUSE / 4)) {
            check(!FIRST.getLock("interop:renewed").tryLock(), "not renewed");
        }
        check(!endless.isDone(), "the script has ended");
        held.unlock();
        FIRST.getScript().scriptKill();
        try {
            endless.get(SOON, MS);
            throw new AssertionError("not killed");
        } catch (ExecutionException killed) {
            third.shutdown();
        }
        return null;
    }

    public static void main(String... arguments) {
        int failed = 0;
        for (var behaviour : BEHAVIOURS.entrySet()) {
            try {
                behaviour.getValue().call();
            } catch (Exception | AssertionError failure) {
                failed++;
                System.out.println("failed: " + behaviour.getKey());
                failure.printStackTrace(System.out);
            }
        }
        System.out.println(Adapter.title("redisson") + " (" + String.join(", ", BEHAVIOURS.keySet()) + ")");
        System.exit(Math.min(failed, 1));
    }
}
