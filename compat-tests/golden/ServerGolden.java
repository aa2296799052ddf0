// In the server's package, because the password and digest code is visible to that package only.
package org.apache.zookeeper.server;

import java.io.File;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CheckedOutputStream;
import org.apache.jute.BinaryOutputArchive;
import org.apache.jute.OutputArchive;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.StatPersisted;
import org.apache.zookeeper.server.persistence.FileHeader;
import org.apache.zookeeper.server.persistence.FileSnap;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;
import org.apache.zookeeper.server.persistence.SnapStream;
import org.apache.zookeeper.server.persistence.Util;

/**
 * Writes values that Java's server computes or stores: passwords.txt, digests.txt, and (only on request, because
 * its times and session ids differ on every run) the data directory java-data with its content in java-data.txt.
 * From java-data it makes other directories with the same content: java-packed, java-fuzzy.
 */
public final class ServerGolden {
    private static final byte[] UNICODE = "gr\u00fc\u00df\u20ac".getBytes(StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        if (args[1].equals("data")) {
            writeData(folder);
            return;
        }
        if (args[1].equals("snapshots")) {
            writeSnapshots(folder);
            return;
        }
        try (PrintStream out = open(folder, "passwords.txt")) {
            ZooKeeperServer server = new ZooKeeperServer();
            Random random = new Random(2);
            for (int i = 0; i < 40; i++) {
                long id = i < 6 ? new long[] {0, 1, -1, Long.MAX_VALUE, Long.MIN_VALUE, 0xB3415C00L}[i] : random.nextLong();
                out.println("0x" + Long.toHexString(id) + " " + hex(server.generatePasswd(id)));
            }
        }
        try (PrintStream out = open(folder, "digests.txt")) {
            out.println("# path data czxid mzxid ctime mtime version cversion aversion ephemeralOwner pzxid digest");
            Random random = new Random(3);
            for (String path : List.of("", "/", "/a", "/a/b", "/zookeeper", "/zookeeper/quota", "/zookeeperx", "/gr\u00fc\u00df\u20ac")) {
                for (byte[] data : new byte[][] {null, {}, {0}, "hello".getBytes(StandardCharsets.UTF_8)}) {
                    StatPersisted zero = new StatPersisted();
                    StatPersisted some = new StatPersisted(random.nextLong(), random.nextLong(), random.nextLong(), random.nextLong(),
                        random.nextInt(), random.nextInt(), random.nextInt(), random.nextLong(), random.nextLong());
                    for (StatPersisted stat : List.of(zero, some)) {
                        long digest = new DigestCalculator().calculateDigest(path, data, stat);
                        out.println(quoted(path) + " " + bytes(data) + " " + stat(stat) + " " + digest);
                    }
                }
            }
        }
    }

    private static void writeData(Path folder) throws Exception {
        System.setProperty("zookeeper.extendedTypesEnabled", "true"); // TTL nodes are refused without it.
        File scratch = Files.createTempDirectory("golden").toFile();
        ZooKeeperServer server = new ZooKeeperServer(scratch, scratch, 2000);
        server.setMinSessionTimeout(1000);
        server.setMaxSessionTimeout(60000);
        NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        factory.configure(new InetSocketAddress("127.0.0.1", 0), 10);
        factory.startup(server);
        String address = "127.0.0.1:" + factory.getLocalPort();

        ZooKeeper first = connect(server, address, 30000);
        ZooKeeper second = connect(server, address, 20000);
        beforeSnapshot(server, address, first, second);
        File snapshot = server.takeSnapshot();
        afterSnapshot(server, address, first, second);
        String live = dump(server.getZKDatabase());
        // The clients stay connected: a server that stops leaves its sessions and their ephemerals in the data.
        factory.shutdown();
        server.shutdown();

        Path target = Files.createDirectories(folder.resolve("java-data/version-2"));
        for (File old : target.toFile().listFiles()) {
            Files.delete(old.toPath());
        }
        for (File file : new File(scratch, "version-2").listFiles()) {
            if (file.getName().startsWith("log.")) {
                trim(file);
            }
            if (file.equals(snapshot) || file.getName().startsWith("log.")) {
                Files.copy(file.toPath(), target.resolve(file.getName()));
            }
        }
        // Java must load from the files, as they are stored in Git, the tree that it served.
        same(load(folder.resolve("java-data")), live);
        try (PrintStream out = open(folder, "java-data.txt")) {
            out.print(live);
        }
        System.exit(0); // The abandoned clients would go on trying to reconnect.
    }

    /** Writes the content of java-data as compressed snapshots, and as a fuzzy snapshot taken while writes were applied. */
    private static void writeSnapshots(Path folder) throws Exception {
        String live = Files.readString(folder.resolve("java-data.txt"));
        for (SnapStream.StreamMode mode : List.of(SnapStream.StreamMode.GZIP, SnapStream.StreamMode.SNAPPY)) {
            Path home = emptied(folder.resolve("java-packed/" + mode.getName()));
            ZKDatabase loaded = load(folder.resolve("java-data"));
            SnapStream.setStreamMode(mode);
            String name = Util.makeSnapshotName(loaded.getDataTreeLastProcessedZxid());
            new FileSnap(home.toFile()).serialize(loaded.getDataTree(), loaded.getSessionWithTimeOuts(), home.resolve(name).toFile(), false);
            same(load(home.getParent()), live);
        }
        SnapStream.setStreamMode(SnapStream.StreamMode.CHECKED);
        Path from = folder.resolve("java-data/version-2");
        Path home = emptied(folder.resolve("java-fuzzy"));
        Files.copy(from.resolve("log.1"), home.resolve("log.1"));
        DataTree tree = new DataTree();
        ConcurrentHashMap<Long, Integer> sessions = new ConcurrentHashMap<>();
        new FileSnap(from.toFile()).deserialize(tree, sessions);
        try (CheckedOutputStream out = SnapStream.getOutputStream(home.resolve("snapshot.c").toFile(), false)) {
            OutputArchive archive = BinaryOutputArchive.getArchive(out);
            new FileHeader(FileSnap.SNAP_MAGIC, 2, -1).serialize(archive, "fileheader");
            archive.writeInt(sessions.size(), "count");
            for (Map.Entry<Long, Integer> session : new TreeMap<>(sessions).entrySet()) {
                archive.writeLong(session.getKey(), "id");
                archive.writeInt(session.getValue(), "timeout");
            }
            // The ACL table is written first; then the rest of the log is applied; then the znodes are written.
            tree.serializeAcls(archive);
            File data = folder.resolve("java-data").toFile();
            new FileTxnSnapLog(data, data).fastForwardFromEdits(tree, sessions, (header, txn, digest) -> { });
            tree.serializeNodes(archive);
            SnapStream.sealStream(out, archive);
            tree.serializeZxidDigest(archive);
            SnapStream.sealStream(out, archive);
            tree.serializeLastProcessedZxid(archive);
            SnapStream.sealStream(out, archive);
        }
        same(load(home.getParent()), live);
    }

    private static Path emptied(Path home) throws Exception {
        Path files = Files.createDirectories(home.resolve("version-2"));
        for (File old : files.toFile().listFiles()) {
            Files.delete(old.toPath());
        }
        return files;
    }

    private static ZKDatabase load(Path data) throws Exception {
        ZKDatabase database = new ZKDatabase(new FileTxnSnapLog(data.toFile(), data.toFile()));
        database.loadDataBase();
        return database;
    }

    private static void same(ZKDatabase loaded, String live) {
        if (!dump(loaded).equals(live)) {
            throw new IllegalStateException("served:\n" + live + "loaded:\n" + dump(loaded));
        }
    }

    private static void beforeSnapshot(ZooKeeperServer server, String address, ZooKeeper first, ZooKeeper second) throws Exception {
        first.create("/plain", new byte[] {1, 2, 3}, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        first.create("/null", null, Ids.READ_ACL_UNSAFE, CreateMode.PERSISTENT);
        first.create("/empty", new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        first.create("/gr\u00fc\u00df\u20ac", UNICODE, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        first.create("/plain/early", new byte[] {4}, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        second.create("/plain/other", new byte[] {5}, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        first.addAuthInfo("digest", "user:secret".getBytes(StandardCharsets.UTF_8));
        first.create("/secret", UNICODE, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        ZooKeeper closed = connect(server, address, 10000);
        closed.create("/plain/gone", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        closed.close();
    }

    private static void afterSnapshot(ZooKeeperServer server, String address, ZooKeeper first, ZooKeeper second) throws Exception {
        first.create("/plain/seq-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL);
        first.create("/plain/seq-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
        first.create("/two", UNICODE, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, new org.apache.zookeeper.data.Stat());
        first.create("/container", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
        first.create("/container/child", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        first.create("/emptied", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
        first.create("/emptied/child", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        first.delete("/emptied/child", 0);
        new ContainerManager(server.getZKDatabase(), server.firstProcessor, 1000, 10000).checkContainers();
        await("the removal of the emptied container", () -> second.exists("/emptied", false) == null);
        first.create("/ttl", new byte[] {7}, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, new org.apache.zookeeper.data.Stat(), 3600000);
        first.create("/ttl/seq-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, null, 7200000);
        first.setData("/plain", new byte[] {9}, 0);
        first.setData("/plain", null, -1);
        first.setACL("/two", Arrays.asList(new ACL(Perms.READ | Perms.ADMIN, new Id("world", "anyone")),
            new ACL(Perms.ALL, new Id("digest", "a:b")), new ACL(Perms.WRITE, new Id("ip", "10.0.0.0/8"))), 0);
        first.setACL("/plain", Ids.CREATOR_ALL_ACL, -1);
        first.delete("/null", -1);
        first.multi(List.of(Op.check("/two", 0), Op.create("/multi", UNICODE, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
            Op.create("/multi/e", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL), Op.setData("/multi", new byte[] {1}, 0),
            Op.create("/multi/c", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER),
            Op.create("/multi/t", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, 5000000), Op.delete("/empty", 0)));
        refused(() -> first.multi(List.of(Op.create("/never", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT), Op.delete("/two", 99))));
        refused(() -> first.create("/plain/early/child", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
        refused(() -> second.setData("/secret", null, -1));
        second.close(); // Takes /plain/other with it.
        ZooKeeper third = connect(server, address, 40000);
        third.create("/last", new byte[] {8}, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
    }

    private static ZooKeeper connect(ZooKeeperServer server, String address, int timeoutMs) throws Exception {
        ZooKeeper client = new ZooKeeper(address, timeoutMs, event -> { });
        await("a session", () -> client.getState().isConnected());
        // Checks the method that makes passwords.txt against the password that a client received.
        if (!Arrays.equals(client.getSessionPasswd(), server.generatePasswd(client.getSessionId()))) {
            throw new IllegalStateException("the password of a live session differs");
        }
        return client;
    }

    private interface Call<T> {
        T run() throws Exception;
    }

    private static void await(String what, Call<Boolean> done) throws Exception {
        for (int i = 0; i < 1000; i++) {
            if (done.run()) {
                return;
            }
            Thread.sleep(10);
        }
        throw new IllegalStateException("waited in vain for " + what);
    }

    /** Runs a request that must be refused: the server logs an error transaction for it. */
    private static void refused(Call<Object> call) throws Exception {
        try {
            call.run();
        } catch (KeeperException e) {
            return;
        }
        throw new IllegalStateException("not refused");
    }

    /** Cuts the zeros that Java preallocates; each record ends in a byte that is not zero. */
    private static void trim(File log) throws Exception {
        byte[] bytes = Files.readAllBytes(log.toPath());
        int end = bytes.length;
        while (bytes[end - 1] == 0) {
            end--;
        }
        Files.write(log.toPath(), Arrays.copyOf(bytes, end));
    }

    /** The last zxid and the tree digest, then each session, then each node in path order: path data stat acl digest. */
    private static String dump(ZKDatabase database) {
        DataTree tree = database.getDataTree();
        StringBuilder out = new StringBuilder();
        out.append("zxid 0x").append(Long.toHexString(tree.lastProcessedZxid)).append('\n');
        out.append("digest ").append(tree.getTreeDigest()).append('\n');
        new TreeMap<>(database.getSessionWithTimeOuts()).forEach((id, timeoutMs) ->
            out.append("session 0x").append(Long.toHexString(id)).append(' ').append(timeoutMs).append('\n'));
        TreeSet<String> paths = new TreeSet<>();
        collect(tree, "", paths);
        for (String path : paths) {
            DataNode node = tree.getNode(path);
            out.append("node ").append(quoted(path)).append(' ').append(bytes(node.getData())).append(' ').append(stat(node.stat));
            for (ACL acl : tree.getACL(node)) {
                out.append(' ').append(acl.getPerms()).append(':').append(acl.getId().getScheme()).append(':').append(acl.getId().getId());
            }
            out.append(' ').append(new DigestCalculator().calculateDigest(path, node)).append('\n');
        }
        return out.toString();
    }

    private static void collect(DataTree tree, String path, TreeSet<String> paths) {
        paths.add(path);
        for (String child : tree.getNode(path).getChildren()) {
            collect(tree, path + "/" + child, paths);
        }
    }

    private static PrintStream open(Path folder, String name) throws Exception {
        return new PrintStream(folder.resolve(name).toFile(), StandardCharsets.UTF_8);
    }

    private static String quoted(String path) {
        return '"' + path + '"';
    }

    private static String bytes(byte[] data) {
        return data == null ? "null" : "x:" + hex(data);
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    private static String stat(StatPersisted s) {
        return s.getCzxid() + " " + s.getMzxid() + " " + s.getCtime() + " " + s.getMtime() + " " + s.getVersion() + " "
            + s.getCversion() + " " + s.getAversion() + " " + s.getEphemeralOwner() + " " + s.getPzxid();
    }
}
