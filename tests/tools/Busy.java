import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;

/** Computes, allocates, waits for a monitor and parks for some seconds, so that a recording of it has everything. */
public class Busy {
    static final Object monitor = new Object();
    static volatile long sink;

    static long fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    static void compute(long until) {
        LongUnaryOperator work = n -> fib((int) n); // a frame of a generated class
        while (System.nanoTime() < until) {
            sink += work.applyAsLong(20);
        }
    }

    static void allocate(long until) {
        List<byte[]> kept = new ArrayList<>();
        while (System.nanoTime() < until) {
            kept.add(new byte[1000]);
            kept.add(new byte[3_000_000]);
            if (kept.size() > 50) {
                kept.clear();
            }
        }
    }

    static void contend(long until) {
        while (System.nanoTime() < until) {
            synchronized (monitor) {
                sleep(25);
            }
        }
    }

    static void park(long until) {
        while (System.nanoTime() < until) {
            LockSupport.parkNanos(30_000_000);
        }
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) throws Exception {
        long until = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        List<Thread> threads = new ArrayList<>();
        threads.add(new Thread(() -> compute(until)));
        threads.add(new Thread(() -> allocate(until)));
        threads.add(new Thread(() -> contend(until)));
        threads.add(new Thread(() -> contend(until)));
        threads.add(new Thread(() -> park(until)));
        for (Thread t : threads) {
            t.start();
        }
        for (Thread t : threads) {
            t.join();
        }
    }
}
