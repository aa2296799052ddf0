import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.zookeeper.CreateMode;

/** Curator's recipes, one command each; what is acquired is held until another command releases it or the process dies. */
final class Recipes {
    /** Recipe objects that later commands need, by command and path. */
    private static final Map<String, Object> KEPT = new HashMap<>();

    private Recipes() {
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String answer(CuratorFramework client, String[] words) throws Exception {
        String path = words[1];
        switch (words[0]) {
            case "lock":
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                KEPT.put("lock " + path, mutex);
                mutex.acquire();
                return "";
            case "unlock":
                ((InterProcessMutex) KEPT.remove("lock " + path)).release();
                return "";
            case "read":
                new InterProcessReadWriteLock(client, path).readLock().acquire();
                return "";
            case "write":
                new InterProcessReadWriteLock(client, path).writeLock().acquire();
                return "";
            case "semaphore":
                new InterProcessSemaphoreV2(client, path, Integer.parseInt(words[2])).acquire();
                return "";
            case "latch":
                LeaderLatch latch = new LeaderLatch(client, path);
                latch.start();
                latch.await();
                return "";
            case "lead":
                lead(client, path);
                return "";
            case "enter":
                DistributedDoubleBarrier doors = new DistributedDoubleBarrier(client, path, Integer.parseInt(words[2]));
                KEPT.put("enter " + path, doors);
                doors.enter();
                return "";
            case "leave":
                ((DistributedDoubleBarrier) KEPT.get("enter " + path)).leave();
                return "";
            case "block":
                new DistributedBarrier(client, path).setBarrier();
                return "";
            case "pass":
                new DistributedBarrier(client, path).waitOnBarrier();
                return "";
            case "open":
                new DistributedBarrier(client, path).removeBarrier();
                return "";
            case "protected":
                return client.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath(path + "/n-");
            case "own":
                PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, path, bytes(words[2]));
                node.start();
                node.waitForInitialCreate(60, java.util.concurrent.TimeUnit.SECONDS);
                return "";
            case "touch":
                PersistentTtlNode ttl = new PersistentTtlNode(client, path, Long.parseLong(words[2]), bytes("ttl"));
                ttl.start();
                ttl.waitForInitialCreate(60, java.util.concurrent.TimeUnit.SECONDS);
                return "";
            case "revocable":
                InterProcessMutex revocable = new InterProcessMutex(client, path);
                revocable.makeRevocable(asked -> RecipeWork.say("event", "3 revoke"));
                KEPT.put("lock " + path, revocable);
                revocable.acquire();
                return "";
            case "revoke":
                Collection<String> holders = new InterProcessMutex(client, path).getParticipantNodes();
                Revoker.attemptRevoke(client, holders.iterator().next());
                return "";
            case "join":
                GroupMember member = new GroupMember(client, path, words[2]);
                member.start();
                KEPT.put("join " + path, member);
                return "";
            case "await": // Until the members of the group, sorted, are exactly these.
                GroupMember me = (GroupMember) KEPT.get("join " + path);
                while (!String.join(",", new TreeSet<>(me.getCurrentMembers().keySet())).equals(words[2])) {
                    Thread.sleep(20);
                }
                return "";
            case "watch":
                watch(client, path, words[2]);
                return "";
            default:
                return Queues.answer(client, words);
        }
    }

    private static void lead(CuratorFramework client, String path) throws Exception {
        CountDownLatch leading = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework from) throws Exception {
                leading.countDown();
                new CountDownLatch(1).await(); // Leads until it dies.
            }
        });
        selector.start();
        leading.await();
    }

    /** Prints `event 3 PATH DATA` for each node that exists, is created or changes, and `event 2 PATH` for each that is deleted. */
    private static void watch(CuratorFramework client, String path, String kind) throws Exception {
        switch (kind) {
            case "children":
                PathChildrenCache children = new PathChildrenCache(client, path, true);
                children.getListenable().addListener((from, event) -> {
                    boolean gone = event.getType().name().equals("CHILD_REMOVED");
                    if (gone || event.getType().name().matches("CHILD_(ADDED|UPDATED)")) {
                        changed(gone, event.getData());
                    }
                });
                children.start();
                return;
            case "tree":
                TreeCache tree = new TreeCache(client, path);
                tree.getListenable().addListener((from, event) -> {
                    boolean gone = event.getType().name().equals("NODE_REMOVED");
                    if (gone || event.getType().name().matches("NODE_(ADDED|UPDATED)")) {
                        changed(gone, event.getData());
                    }
                });
                tree.start();
                return;
            default: // A recursive persistent watch.
                CuratorCache cache = CuratorCache.build(client, path);
                cache.listenable().addListener((type, before, after) ->
                    changed(type == CuratorCacheListener.Type.NODE_DELETED, after != null ? after : before));
                cache.start();
        }
    }

    private static void changed(boolean gone, ChildData node) {
        String data = node.getData() == null ? "" : new String(node.getData(), StandardCharsets.UTF_8);
        RecipeWork.say("event", gone ? "2 " + node.getPath() : "3 " + node.getPath() + " " + data);
    }
}
