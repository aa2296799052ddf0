import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/**
 * Prints how ZooKeeper parses each `zoo.cfg`: `java -cp 'JARS/*' Conf.java cases.txt > expected.txt`.
 * A case is one line; `%xx` stands for a byte. A case that begins with `N!` has a myid of N.
 */
public class Conf {
    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]), StandardCharsets.US_ASCII)) {
            System.out.println(outcome(line));
        }
    }

    static String outcome(String line) throws Exception {
        Path dir = Files.createTempDirectory("conf");
        int id = line.indexOf('!');
        if (id >= 0) {
            Files.writeString(dir.resolve("myid"), line.substring(0, id) + "\n");
            line = line.substring(id + 1);
        }
        // Only a case with a myid needs a directory that exists.
        line = line.replace("@", dir.toString());
        // After `&&` comes another file: its name, `:`, its text.
        String[] files = line.split("&&");
        Path file = dir.resolve("zoo.cfg");
        Files.write(file, bytes(files[0]));
        for (int i = 1; i < files.length; i++) {
            int colon = files[i].indexOf(':');
            Files.write(dir.resolve(files[i].substring(0, colon)), bytes(files[i].substring(colon + 1)));
        }
        QuorumPeerConfig config = new QuorumPeerConfig();
        QuorumPeerConfig.setStandaloneEnabled(true);
        QuorumPeerConfig.setReconfigEnabled(false);
        try {
            config.parse(file.toString());
        } catch (QuorumPeerConfig.ConfigException | RuntimeException refused) {
            return "REFUSED";
        }
        if (config.isDistributed()) {
            return ensemble(config, file);
        }
        var address = config.getClientPortAddress();
        return (address == null ? "none" : address.getPort())
            + " " + (address == null || address.getAddress().isAnyLocalAddress() ? "*" : address.getHostString())
            + " " + config.getTickTime()
            + " " + config.getMinSessionTimeout()
            + " " + config.getMaxSessionTimeout()
            + " " + config.getMaxClientCnxns()
            + " " + config.getClientPortListenBacklog()
            + " " + config.getSnapRetainCount()
            + " " + config.getPurgeInterval()
            + " " + config.getDataDir().toString().replace(dir.toString(), "@")
            + " " + config.getDataLogDir().toString().replace(dir.toString(), "@");
    }

    static String ensemble(QuorumPeerConfig config, Path file) {
        var address = config.getClientPortAddress();
        return "ENSEMBLE"
            + " " + (address == null ? "none" : address.getPort())
            + " " + config.getServerId()
            + " " + config.getInitLimit()
            + " " + config.getSyncLimit()
            + " " + config.getConnectToLearnerMasterLimit()
            + " " + config.getObserverMasterPort()
            + " " + config.getQuorumListenOnAllIPs()
            + " " + config.getPeerType()
            + " " + config.getSyncEnabled()
            + " " + config.areLocalSessionsEnabled()
            + " " + config.isLocalSessionsUpgradingEnabled()
            + " " + config.isMultiAddressEnabled()
            + " " + config.isMultiAddressReachabilityCheckEnabled()
            + " " + config.getMultiAddressReachabilityCheckTimeoutMs()
            + " " + config.getQuorumVerifier().getOraclePath()
            + " " + (Files.exists(Path.of(file + ".bak")) ? "backed-up" : "-")
            + " " + config.getQuorumVerifier().toString().replace("\n", "%0a")
            + " " + (config.getLastSeenQuorumVerifier() == null ? "-" : config.getLastSeenQuorumVerifier().toString().replace("\n", "%0a"));
    }

    static byte[] bytes(String line) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int i = 0; i < line.length(); i++) {
            if (line.charAt(i) == '%') {
                out.write(Integer.parseInt(line.substring(i + 1, i + 3), 16));
                i += 2;
            } else {
                out.write(line.charAt(i));
            }
        }
        return out.toByteArray();
    }
}
