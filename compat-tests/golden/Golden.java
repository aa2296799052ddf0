import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.jute.BinaryInputArchive;
import org.apache.jute.BinaryOutputArchive;
import org.apache.jute.Record;

/**
 * Writes how Java's generated record classes encode given values: records.txt and strings.txt.
 *
 * Lines of records.txt:
 *   schema NAME field:type...
 *   NAME VARIANT field=value... HEX
 *   NAME VARIANT field=value... HEX reread field=value... HEX
 * The third form is used where Java, decoding its own bytes, gets another record than it encoded; that record
 * and its bytes follow `reread`.
 */
public final class Golden {
    private static final Pattern CLASS = Pattern.compile(
        "(org/apache/zookeeper/(?:data|proto|server/quorum|server/persistence|txn)/\\w+)\\.class");
    private static final List<String> VARIANTS = List.of("null", "empty", "typical", "max", "min", "bmp", "astral", "lone");

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        try (PrintStream out = new PrintStream(folder.resolve("records.txt").toFile(), StandardCharsets.US_ASCII)) {
            for (Class<?> type : recordClasses()) {
                out.println(schema(type));
                for (String variant : VARIANTS) {
                    // The last three variants differ from "typical" in strings only.
                    if (VARIANTS.indexOf(variant) < 5 || hasString(type)) {
                        out.println(line(type, variant));
                    }
                }
            }
        }
        try (PrintStream out = new PrintStream(folder.resolve("strings.txt").toFile(), StandardCharsets.US_ASCII)) {
            strings(out);
        }
    }

    /** Every record of the jars on the class path, by simple name; the names are unique over the five modules. */
    private static List<Class<?>> recordClasses() throws Exception {
        TreeSet<String> names = new TreeSet<>();
        for (String jar : System.getProperty("java.class.path").split(":")) {
            if (jar.matches(".*/zookeeper(-jute)?-3[^/]*\\.jar")) {
                try (JarFile file = new JarFile(jar)) {
                    file.stream().map(entry -> CLASS.matcher(entry.getName())).filter(Matcher::matches)
                        .forEach(match -> names.add(match.group(1).replace('/', '.')));
                }
            }
        }
        List<Class<?>> found = new ArrayList<>();
        for (String name : names) {
            Class<?> type = Class.forName(name, false, Golden.class.getClassLoader());
            // The same packages hold hand-written classes. Jute's annotation on the generated ones is in the source only,
            // so they are recognized by implementing Record with jute's methods.
            if (Record.class.isAssignableFrom(type) && !type.isInterface() && isGenerated(type)) {
                found.add(type);
            }
        }
        return found;
    }

    private static boolean isGenerated(Class<?> type) {
        try {
            type.getDeclaredMethod("compareTo", Object.class);
            type.getDeclaredConstructor();
            return true;
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    private static List<Field> fields(Class<?> type) {
        List<Field> fields = new ArrayList<>();
        for (Field field : type.getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                fields.add(field);
            }
        }
        return fields;
    }

    private static String schema(Class<?> type) {
        StringBuilder out = new StringBuilder("schema " + type.getSimpleName());
        for (Field field : fields(type)) {
            out.append(' ').append(field.getName()).append(':').append(typeName(field.getGenericType()));
        }
        return out.toString();
    }

    private static String typeName(Type type) {
        if (type instanceof ParameterizedType list) {
            return "vector<" + typeName(list.getActualTypeArguments()[0]) + ">";
        }
        Class<?> plain = (Class<?>) type;
        return plain == String.class ? "ustring" : plain == byte[].class ? "buffer" : plain.getSimpleName();
    }

    private static boolean hasString(Class<?> type) {
        return fields(type).stream().anyMatch(field -> {
            Type inner = field.getGenericType() instanceof ParameterizedType list
                ? list.getActualTypeArguments()[0] : field.getType();
            return inner == String.class || Record.class.isAssignableFrom((Class<?>) inner) && hasString((Class<?>) inner);
        });
    }

    private static String line(Class<?> type, String variant) throws Exception {
        Record record = fill(type, variant, new int[1]);
        byte[] bytes = bytes(record);
        Record again = (Record) type.getDeclaredConstructor().newInstance();
        again.deserialize(BinaryInputArchive.getArchive(new ByteArrayInputStream(bytes)), "");
        String line = type.getSimpleName() + " " + variant + named(record) + " " + hex(bytes);
        // Compared as text: a null and an empty vector are equal to some generated compareTo methods.
        return named(again).equals(named(record)) ? line : line + " reread" + named(again) + " " + hex(bytes(again));
    }

    private static Record fill(Class<?> type, String variant, int[] count) throws Exception {
        Record record = (Record) type.getDeclaredConstructor().newInstance();
        for (Field field : fields(type)) {
            field.set(record, value(field.getGenericType(), variant, count));
        }
        return record;
    }

    /** One value; `count` numbers the values of a line, so that swapped fields are detected. */
    private static Object value(Type type, String variant, int[] count) throws Exception {
        int n = ++count[0];
        boolean none = variant.equals("null");
        boolean zero = none || variant.equals("empty");
        if (type == int.class) {
            return zero ? 0 : variant.equals("max") ? Integer.MAX_VALUE : variant.equals("min") ? Integer.MIN_VALUE : 0x01020300 + n;
        } else if (type == long.class) {
            return zero ? 0L : variant.equals("max") ? Long.MAX_VALUE : variant.equals("min") ? Long.MIN_VALUE : 0x0102030405060700L + n;
        } else if (type == boolean.class) {
            return !zero && !variant.equals("min");
        } else if (type == String.class) {
            return none ? null : string(variant, n);
        } else if (type == byte[].class) {
            return none ? null : zero ? new byte[0] : variant.equals("max") ? new byte[] {-1, -128, 127, 0, 10} : new byte[] {(byte) n};
        } else if (type instanceof ParameterizedType list) {
            if (none) {
                return null;
            }
            List<Object> items = new ArrayList<>();
            for (int i = 0; i < (zero ? 0 : variant.equals("max") ? 3 : variant.equals("min") ? 1 : 2); i++) {
                // The second item of "max" has null fields: null must also work inside a vector.
                items.add(value(list.getActualTypeArguments()[0], i == 1 && variant.equals("max") ? "null" : variant, count));
            }
            return items;
        }
        return fill((Class<?>) type, variant, count);
    }

    private static String string(String variant, int n) {
        return switch (variant) {
            case "empty", "min" -> "";
            case "typical" -> "/path-" + n;
            case "max" -> "x".repeat(60) + n;
            // The characters on both sides of each boundary between one, two and three bytes.
            case "bmp" -> "\u0000\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\u00e9\u20ac\u65e5\u672c" + n;
            case "astral" -> "\ud800\udc00-\ud83d\ude00\udbff\udfff" + n;
            case "lone" -> "a\ud800b\udfff" + n + "\udc00\ud800";
            default -> throw new IllegalArgumentException(variant);
        };
    }

    /** How Java decodes bytes that are not the UTF-8 which it would encode, and how it encodes the result: HEX "text" HEX. */
    private static void strings(PrintStream out) throws Exception {
        List<byte[]> cases = new ArrayList<>();
        for (String hex : List.of("80", "bf", "c0", "c080", "c1bf", "c2", "c241", "c2c2a9", "e0", "e080", "e08080", "e09fbf", "e0a0",
                "e0a080", "e2", "e282", "e28241", "e282c2a9", "eda080", "edbfbf", "ed9fbf", "eda0", "eda080edb080", "ee8080",
                "f0", "f09f", "f09f98", "f09f9880", "f0808080", "f08fbfbf", "f0908080", "f09f9841", "f09f4141", "f48fbfbf", "f4908080",
                "f490", "f5808080", "f7bfbfbf", "f888808080", "fc8480808080", "fe", "ff", "fffe41", "41f09f", "efbfbd", "efbfbf")) {
            cases.add(HexFormat.of().parseHex(hex));
        }
        // Random strings over the bytes that matter; the seed keeps the file the same from run to run.
        Random random = new Random(1);
        byte[] alphabet = HexFormat.of().parseHex("4180a0bf9fc0c2dfe0e1edef90f0f1f48ff5ff");
        for (int i = 0; i < 300; i++) {
            byte[] bytes = new byte[1 + random.nextInt(9)];
            for (int at = 0; at < bytes.length; at++) {
                bytes[at] = alphabet[random.nextInt(alphabet.length)];
            }
            cases.add(bytes);
        }
        for (byte[] bytes : cases) {
            ByteArrayOutputStream framed = new ByteArrayOutputStream();
            BinaryOutputArchive.getArchive(framed).writeBuffer(bytes, "");
            String text = BinaryInputArchive.getArchive(new ByteArrayInputStream(framed.toByteArray())).readString("");
            ByteArrayOutputStream again = new ByteArrayOutputStream();
            BinaryOutputArchive.getArchive(again).writeString(text, "");
            out.println(hex(framed.toByteArray()) + " " + text(text) + " " + hex(again.toByteArray()));
        }
    }

    private static byte[] bytes(Record record) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        record.serialize(BinaryOutputArchive.getArchive(out), "");
        return out.toByteArray();
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    private static String named(Record record) throws Exception {
        StringBuilder out = new StringBuilder();
        for (Field field : fields(record.getClass())) {
            out.append(' ').append(field.getName()).append('=').append(text(field.get(record)));
        }
        return out.toString();
    }

    /** A value without spaces: "text", x:hex, [item,...], {field,...}, null, or a number. */
    private static String text(Object value) throws Exception {
        if (value instanceof String string) {
            StringBuilder out = new StringBuilder("\"");
            for (char unit : string.toCharArray()) {
                boolean plain = unit > ' ' && unit < 0x7f && unit != '"' && unit != '\\';
                out.append(plain ? String.valueOf(unit) : String.format("\\u%04x", (int) unit));
            }
            return out.append('"').toString();
        } else if (value instanceof byte[] bytes) {
            return "x:" + hex(bytes);
        } else if (value instanceof List<?> list) {
            List<String> items = new ArrayList<>();
            for (Object item : list) {
                items.add(text(item));
            }
            return "[" + String.join(",", items) + "]";
        } else if (value instanceof Record record) {
            List<String> items = new ArrayList<>();
            for (Field field : fields(record.getClass())) {
                items.add(text(field.get(record)));
            }
            return "{" + String.join(",", items) + "}";
        }
        return String.valueOf(value);
    }
}
