import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * Curator, driven by commands on stdin. `class Worker` in workers.py and recipes.py describe them.
 */
public final class RecipeWork {
    private static CuratorFramework client;

    private RecipeWork() {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                String[] words = line.split(" ", -1);
                String text = answer(words);
                say("ok", text != null ? text : Recipes.answer(client, words));
            } catch (KeeperException e) {
                say("error", String.valueOf(e.code().intValue()));
            }
        }
        System.exit(0); // Curator's threads would keep the process alive.
    }

    static synchronized void say(String kind, String text) {
        System.out.println(kind + " " + text);
        System.out.flush();
    }

    /** Runs a command that every client has; returns null for a command of recipes. */
    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "connect":
                client = CuratorFrameworkFactory.builder().connectString(words[1])
                    .sessionTimeoutMs(Integer.parseInt(words[2])).retryPolicy(new RetryForever(100)).build();
                client.getConnectionStateListenable().addListener((from, state) ->
                    say("state", state.isConnected() ? "SyncConnected" : "Disconnected"));
                client.start();
                return "";
            case "session":
                return Long.toHexString(client.getZookeeperClient().getZooKeeper().getSessionId());
            case "create":
                CreateMode mode = CreateMode.fromFlag(Integer.parseInt(words[1]));
                return client.create().creatingParentsIfNeeded().withMode(mode)
                    .forPath(words[2], words[3].getBytes(StandardCharsets.UTF_8));
            case "exists":
                if (client.checkExists().forPath(words[1]) == null) {
                    throw KeeperException.create(KeeperException.Code.NONODE);
                }
                return "";
            case "set":
                byte[] bytes = words[2].getBytes(StandardCharsets.UTF_8);
                return String.valueOf(client.setData().withVersion(Integer.parseInt(words[3])).forPath(words[1], bytes)
                    .getVersion());
            case "delete":
                client.delete().withVersion(Integer.parseInt(words[2])).forPath(words[1]);
                return "";
            case "close":
                client.close();
                return "";
            default:
                return null;
        }
    }
}
