import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.StringTokenizer;
import java.util.TreeMap;

/** Counts words and prints the most frequent ones as JSON, again and again: a program for the flame graph of docs/recipes.md. */
public class Words {
    static String makeText(Random random) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 20000; i++) {
            text.append("word").append(random.nextInt(1 + random.nextInt(2000))).append(i % 9 == 8 ? ".\n" : " ");
        }
        return text.toString();
    }

    static Map<String, Integer> countWords(String text) {
        Map<String, Integer> counts = new TreeMap<>();
        StringTokenizer words = new StringTokenizer(text);
        while (words.hasMoreTokens()) {
            counts.merge(words.nextToken(), 1, Integer::sum);
        }
        return counts;
    }

    static List<Map.Entry<String, Integer>> sortCounts(Map<String, Integer> counts) {
        List<Map.Entry<String, Integer>> sorted = new ArrayList<>(counts.entrySet());
        sorted.sort(Map.Entry.<String, Integer>comparingByValue().reversed().thenComparing(Map.Entry.comparingByKey()));
        return sorted;
    }

    static String toJson(List<Map.Entry<String, Integer>> counts) {
        StringBuilder out = new StringBuilder();
        for (Map.Entry<String, Integer> c : counts) {
            out.append(String.format("{\"word\": \"%s\", \"count\": %d}%n", c.getKey(), c.getValue()));
        }
        return out.toString();
    }

    public static void main(String[] args) {
        Random random = new Random(1);
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        long bytes = 0;
        while (System.nanoTime() < end) {
            bytes += toJson(sortCounts(countWords(makeText(random)))).length();
        }
        System.out.println(bytes + " bytes");
    }
}
