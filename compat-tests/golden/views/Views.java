import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/**
 * Prints how ZooKeeper parses the text of a configuration and prints it again:
 * `java -cp 'JARS/*' Views.java cases.txt > expected.txt`.
 * A case is one line; `%xx` stands for a byte of UTF-8. A case that begins with `M!` may name several addresses.
 */
public class Views {
    public static void main(String[] args) throws Exception {
        QuorumPeerConfig.setStandaloneEnabled(false);
        for (String line : Files.readAllLines(Path.of(args[0]), StandardCharsets.US_ASCII)) {
            System.out.println(outcome(line));
        }
    }

    static String outcome(String line) throws Exception {
        boolean many = line.startsWith("M!");
        System.setProperty("zookeeper.multiAddress.enabled", String.valueOf(many));
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(text(many ? line.substring(2) : line)));
            String shown = QuorumPeerConfig.parseDynamicConfig(properties, 3, false, false, null).toString();
            return shown.replace("%", "%25").replace("\n", "%0a");
        } catch (QuorumPeerConfig.ConfigException | RuntimeException refused) {
            return "REFUSED";
        }
    }

    static String text(String line) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int i = 0; i < line.length(); i++) {
            if (line.charAt(i) == '%') {
                out.write(Integer.parseInt(line.substring(i + 1, i + 3), 16));
                i += 2;
            } else {
                out.write(line.charAt(i));
            }
        }
        return out.toString(StandardCharsets.UTF_8);
    }
}
