import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;

/** Curator's queues in their safe form: an item is locked while it is worked on, and removed afterwards. */
final class Queues {
    private static final QueueSerializer<String> TEXT = new QueueSerializer<String>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    };
    private static final Map<String, DistributedQueue<String>> FIFO = new HashMap<>();
    private static final Map<String, DistributedPriorityQueue<String>> BY_PRIORITY = new HashMap<>();

    private Queues() {
    }

    /** Prints `event 1 ITEM` for each item that it gets, then returns, or hangs for ever with the item locked. */
    private record Consumer(boolean hangs) implements QueueConsumer<String> {
        @Override
        public void consumeMessage(String item) throws Exception {
            RecipeWork.say("event", "1 " + item);
            if (hangs) {
                new CountDownLatch(1).await();
            }
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {
        }
    }

    static String answer(CuratorFramework client, String[] words) throws Exception {
        String path = words[1];
        Consumer consumer = words[0].startsWith("consume") ? new Consumer(words[2].equals("hang")) : null;
        QueueBuilder<String> builder = QueueBuilder.builder(client, consumer, TEXT, path).lockPath(path + "-locks");
        switch (words[0]) {
            case "consume":
            case "produce":
                FIFO.put(path, builder.buildQueue());
                FIFO.get(path).start();
                return "";
            case "put":
                FIFO.get(path).put(words[2]);
                return "";
            case "consume-by-priority":
            case "produce-by-priority":
                BY_PRIORITY.put(path, builder.buildPriorityQueue(0));
                BY_PRIORITY.get(path).start();
                return "";
            case "put-by-priority":
                BY_PRIORITY.get(path).put(words[2], Integer.parseInt(words[3]));
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
