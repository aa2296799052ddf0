import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.TreeSet;

/** Prints how Java parses each properties text: `java Props.java cases.txt > expected.txt`. */
public class Props {
    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]), StandardCharsets.US_ASCII)) {
            System.out.println(outcome(bytes(line)));
        }
    }

    /** A case is one line; `%xx` stands for a byte. */
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

    static String outcome(byte[] text) throws Exception {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(text));
        } catch (IllegalArgumentException malformed) {
            return "ERROR";
        }
        TreeSet<String> pairs = new TreeSet<>();
        for (String key : properties.stringPropertyNames()) {
            pairs.add(quoted(key) + "=" + quoted(properties.getProperty(key)));
        }
        return String.join(" ", pairs);
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder();
        for (char c : text.toCharArray()) {
            boolean plain = c < 128 && (Character.isLetterOrDigit(c) || "._/-".indexOf(c) >= 0);
            out.append(plain ? String.valueOf(c) : String.format("%%u%04x", (int) c));
        }
        return out.toString();
    }
}
