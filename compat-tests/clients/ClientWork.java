import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * Java's client, driven by commands on stdin. `class Worker` in workers.py describes them.
 */
public final class ClientWork {
    private static ZooKeeper client;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                say("ok", answer(line.split(" ", -1)));
            } catch (KeeperException e) {
                say("error", String.valueOf(e.code().intValue()));
            }
        }
    }

    private static synchronized void say(String kind, String text) {
        System.out.println(kind + " " + text);
        System.out.flush();
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "connect":
                client = new ZooKeeper(words[1], Integer.parseInt(words[2]), event -> {
                    if (event.getType() == EventType.None) {
                        say("state", event.getState().name());
                    } else {
                        say("event", event.getType().getIntValue() + " " + event.getPath());
                    }
                });
                return "";
            case "session":
                return Long.toHexString(client.getSessionId());
            case "create":
                CreateMode mode = CreateMode.fromFlag(Integer.parseInt(words[1]));
                return client.create(words[2], words[3].getBytes(StandardCharsets.UTF_8), Ids.OPEN_ACL_UNSAFE, mode);
            case "get":
                Stat stat = new Stat();
                String data = new String(client.getData(words[1], true, stat), StandardCharsets.UTF_8);
                return data + " " + stat.getVersion() + " " + Long.toHexString(stat.getEphemeralOwner());
            case "exists":
                if (client.exists(words[1], true) == null) {
                    throw KeeperException.create(KeeperException.Code.NONODE);
                }
                return "";
            case "set":
                byte[] bytes = words[2].getBytes(StandardCharsets.UTF_8);
                return String.valueOf(client.setData(words[1], bytes, Integer.parseInt(words[3])).getVersion());
            case "children":
                List<String> children = client.getChildren(words[1], true);
                children.sort(null);
                return String.join(",", children);
            case "delete":
                client.delete(words[1], Integer.parseInt(words[2]));
                return "";
            case "multi":
                String child = words[1] + "/m";
                client.multi(Arrays.asList(Op.check(words[1], Integer.parseInt(words[2])),
                    Op.setData(words[1], "multi".getBytes(StandardCharsets.UTF_8), -1),
                    Op.create(child, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT), Op.delete(child, -1)));
                return "";
            case "close":
                client.close();
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
