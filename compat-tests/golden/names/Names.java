import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.Random;
import javax.security.auth.x500.X500Principal;

/**
 * How the JDK prints distinguished names, and which texts it parses as one.
 *
 * Prints lines of two kinds, fields divided by a space; in texts %xx stands for one byte of UTF-8:
 *   der HEX TEXT       the name with this encoding is printed as TEXT; "!" if it is refused
 *   id TEXT 1|0        whether new X500Principal(TEXT) succeeds
 */
public class Names {
    static final Random RANDOM = new Random(17);
    static final String[] TYPES = {
        "2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.10", "2.5.4.11", "2.5.4.9", "0.9.2342.19200300.100.1.25",
        "0.9.2342.19200300.100.1.1", "1.2.840.113549.1.9.1", "2.5.4.5", "2.5.4.12", "2.5.4.4", "2.5.4.42", "2.5.4.43",
        "2.5.4.44", "2.5.4.46", "1.3.6.1.4.1.42.2.11.2.1", "1.3.6.1.4.1.311.60.2.1.3", "2.999.3", "2.5.4.97",
        "1.2.3.4294967296.18446744073709551616"};
    /** UTF8String, PrintableString, IA5String, T61String, BMPString, UniversalString, GeneralString, NumericString, VisibleString. */
    static final int[] TAGS = {12, 12, 12, 19, 19, 22, 20, 30, 28, 27, 18, 26, 2, 4, 3, 5, 48, 0x80, 0xa0, 0x2c, 0x33};
    static final String[] PIECES = {
        "a", "B", "example", "zk1.example.com", " ", "  ", ",", "=", "+", "<", ">", "#", ";", "\"", "\\", "\r", "\n", "\t", "\u0000",
        "\u00e9", "\u00fc\u00df", "\u6771\u4eac", "\ud83d\ude00", "*", "'", "(x)", "/", ":", "?", "@", "_", "&", "%", "\u007f", "\u2028",
        "\u00a0", "e\u0301", "\\,", "\\20"};

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);
        LinkedHashSet<String> names = new LinkedHashSet<>();
        names.add("3000");
        names.add("300231 00".replace(" ", ""));
        for (int tag : TAGS) {
            for (String text : new String[] {"", "ab", "a\u00e9", " a ", "\ud83d\ude00"}) {
                names.add(hex(name(rdn(attribute("2.5.4.3", tag, bytes(tag, text))))));
            }
        }
        for (String type : TYPES) {
            names.add(hex(name(rdn(attribute(type, 19, bytes(19, "ab"))))));
            names.add(hex(name(rdn(attribute(type, 22, bytes(22, "a@b"))))));
        }
        for (String piece : PIECES) {
            for (String text : new String[] {piece, piece + "a", "a" + piece, "a" + piece + "b"}) {
                names.add(hex(name(rdn(attribute("2.5.4.3", 12, bytes(12, text))))));
            }
        }
        for (String raw : new String[] {"ff", "c3", "e282", "eda080", "f4908080", "c0af", "f09f98", "61ff62", "00", "d83d", "d83dde00", "0061", "006100"}) {
            for (int tag : new int[] {12, 19, 20, 22, 27, 30}) {
                names.add(hex(name(rdn(attribute("2.5.4.10", tag, HexFormat.of().parseHex(raw))))));
            }
        }
        // Encodings with an error, or that BER alone allows.
        for (String raw : new String[] {
            "", "30", "3001", "300531033001", "300a3108300606035504030c", "300d310b3009060355040 30c026162".replace(" ", ""),
            "30 0e 31 0c 30 0a 06 03 55 04 03 0c 03 61 62 63", "30 0f 31 0c 30 0a 06 03 55 04 03 0c 03 61 62 63 00",
            "30 81 0e 31 0c 30 0a 06 03 55 04 03 0c 03 61 62 63", "30 0e 30 0c 30 0a 06 03 55 04 03 0c 03 61 62 63",
            "30 0f 31 0d 30 0b 06 03 55 04 03 0c 03 61 62 63 00", "30 0e 31 0c 30 0a 04 03 55 04 03 0c 03 61 62 63",
            "30 0e 31 0c 30 0a 06 03 55 04 83 0c 03 61 62 63", "30 0e 31 0c 30 0a 06 03 55 80 03 0c 03 61 62 63",
            "30 0e 31 0c 30 0a 06 03 55 04 03 1f 03 61 62 63", "30 0e 31 0c 30 0a 06 03 55 04 03 0c 04 61 62 63",
            "30 0b 31 09 30 07 06 00 0c 03 61 62 63", "30 10 31 0e 30 0c 06 03 55 04 03 0c 82 00 03 61 62 63"}) {
            names.add(raw.replace(" ", ""));
        }
        while (names.size() < 560) {
            byte[][] rdns = new byte[1 + RANDOM.nextInt(5)][];
            for (int i = 0; i < rdns.length; i++) {
                byte[][] attributes = new byte[RANDOM.nextInt(4) == 0 ? 2 + RANDOM.nextInt(2) : 1][];
                for (int j = 0; j < attributes.length; j++) {
                    int tag = TAGS[RANDOM.nextInt(TAGS.length)];
                    StringBuilder text = new StringBuilder();
                    for (int n = RANDOM.nextInt(5); n > 0; n--) {
                        text.append(PIECES[RANDOM.nextInt(PIECES.length)]);
                    }
                    attributes[j] = attribute(TYPES[RANDOM.nextInt(TYPES.length)], tag, bytes(tag, text.toString()));
                }
                rdns[i] = rdn(attributes);
            }
            names.add(hex(name(rdns)));
        }
        for (String name : names) {
            String printed;
            try {
                printed = quoted(new X500Principal(HexFormat.of().parseHex(name)).getName());
            } catch (Exception e) {
                printed = "!";
            }
            out.println("der " + name + " " + printed);
        }
        LinkedHashSet<String> ids = new LinkedHashSet<>();
        for (String id : IDS) {
            ids.add(id);
        }
        String[] parts = {
            "CN", "cn", "O", "OID.", "1.2.3", "=", "=", "=", ",", ",", ", ", ";", "+", "\\", "\\,", "\\+", "\\\\", "\"", "\"", "\\\"", "#", "#0401ff",
            "\\20", "\\e9", "\\2", " ", "a", "b", "ab", "\u00e9", "<", "\\ ", "\n", "="};
        while (ids.size() < 700) {
            StringBuilder text = new StringBuilder(RANDOM.nextInt(3) == 0 ? "" : "CN=");
            for (int n = 1 + RANDOM.nextInt(7); n > 0; n--) {
                text.append(parts[RANDOM.nextInt(parts.length)]);
            }
            ids.add(text.toString());
        }
        for (String id : ids) {
            boolean fits = true;
            try {
                new X500Principal(id);
            } catch (IllegalArgumentException e) {
                fits = false;
            }
            out.println("id " + quoted(id) + " " + (fits ? 1 : 0));
        }
    }

    static final String[] IDS = {
        "", " ", "CN=a", "cn=a", "CN=a, O=b", "CN=a,O=b", "CN=a;O=b", "CN=a+O=b", "CN = a", " CN=a", "CN=a ", "CN=", "CN= ", "CN", "=a", ",", "CN=a,",
        ",CN=a", "CN=a,,O=b", "CN=a+", "+CN=a", "CN=a++O=b", "X=a", "S=a", "ST=a", "T=a", "IP=1.2.3.4", "STREET=x", "DC=com", "DNQ=1", "DNQUALIFIER=1",
        "SURNAME=s", "GIVENNAME=g", "INITIALS=i", "GENERATION=g", "EMAIL=a@b", "EMAILADDRESS=a@b", "UID=u", "SERIALNUMBER=1", "SN=1", "TITLE=t",
        "E=a@b", "L=l", "C=c", "OU=u", "1.2.3=a", "OID.1.2.3=a", "oid.1.2.3=a", "OID.CN=a", "OID.OID.1.2=a", "OID.=a", "3.1=a", "0.39=a", "0.40=a",
        "2.40=a", "2.999=a", "1=a", "1.=a", "1..2=a", ".1.2=a", "1.2.=a", "1.-2=a", "-1.2=a", "1.2.-3=a", "1.2.x=a", "1.2 =a", "1 .2=a", "01.02.03=a",
        "0000000001.2=a", "1.0000000002=a", "1.2.4294967296=a", "1.2.99999999999999999999999=a", "1.2.-99999999999=a", "2.99999999999=a", "1.99999999999=a",
        "3000000000.1=a", "1.2.\u0663=a", "1.2.\uff13=a", "\u0661.2=a", "1.2.\\+3=a", "1.2.\"+3\"=a", "\u017ft=a", "u\u0131d=a", "\u00dft=a", "CN\u00a0=a",
        "CN\t=a", "\tCN=a", "\nCN=a", "CN=\na", "CN=a\n", "CN=a\nb", "CN=a=b", "CN=a\\=b", "CN=a#b", "CN=a\\#b", "CN=#", "CN=#0", "CN=#04", "CN=#0400",
        "CN=#0401", "CN=#040100", "CN=#04010000", "CN=#0500", "CN=#0500 ", "CN=# 0500", "CN=#xx", "CN=#1F00", "CN=#3F00", "CN=#048100", "CN=#04810100",
        "CN=#0480", "CN=#04800000", "CN=#30800000", "CN=#3080", "CN=#308000", "CN=#3080040100000", "CN=#30800401610000", "CN=#308004016100",
        "CN=#3080308000000000", "CN=#30803080000000", "CN=#308000000000", "CN=#3080000004", "CN=#30800481016100 00", "CN=#3080048101610000",
        "CN=#308004850000000001610000", "CN=#30800484000000016100 00", "CN=#3080048400000001610000", "CN=#30800484ffffffff610000", "CN=#30800405610000",
        "CN=#0484ffffffff", "CN=#04840000000161", "CN=#048500000000 0161", "CN=#04850000000161", "CN=#048200", "CN=#04820001", "CN=#0482000161",
        "CN=#ff00", "CN=#0000", "CN=#3080a08000000000", "CN=#3080a080040161000000 00", "CN=#3080a08004016100000000", "CN=#04ff", "CN=#0484",
        "CN=#308080000000", "CN=#3080048000000000", "CN=#3080040000000400", "CN=#30800400000004", "CN=#3080040000000000", "CN=#308004000000ff",
        "CN=\\", "CN=\\a", "CN=\\x", "CN=\\2", "CN=\\20", "CN=\\2g", "CN=\\zz", "CN=\\ff", "CN=a\\", "CN=a\\,b", "CN=a\\;b", "CN=a\\+b", "CN=a\\<b",
        "CN=a\\>b", "CN=a\\\"b", "CN=a\\\\b", "CN=a\\\\,O=b", "CN=a\\\\\\,O=b", "CN=a\\ b", "CN=\\ a", "CN=a\\ ", "CN=a\\'b", "CN=a\\\nb", "CN=a<b", "CN=a>b",
        "CN=a\"b", "CN=\"a\"", "CN=\"a", "CN=\"a,b\"", "CN=\"a+b\"", "CN=\"a;b\"", "CN=\"a\" ", "CN=\"a\"b", "CN= \"a\"", "CN=\"a\\\"b\"", "CN=\"a\\b\"",
        "CN=\"a\\20b\"", "CN=\"a\\ b\"", "CN=\"a\\,b\"", "CN=\"a\\\\\"", "CN=\"\"", "CN=\"a\"\n", "CN=\"a\"\t", "CN=\"a=b\"", "CN=\"<>\"", "CN=\"\\'\"",
        "CN=\"a\",O=\"b\"", "CN=\"a,O=b", "CN=a\",O=b\"", "CN=a\"\"\",O=b", "CN=\"a\"+O=\"b\"", "\"CN=a\"", "CN=\u6771\u4eac", "CN=\ud83d\ude00", "CN=a/b",
        "CN=a\u0000", "CN=\u0000", "\\,CN=a", "\\", "\\,", "a\\,=b", "CN=a,\\,O=b", "CN=a\\\\ \\,O=b", "CN=a+O=b+OU=c,C=d", "CN=a,O", "CN=a,O=", "CN=a+O",
        "CN=,O=", "CN=+O=", "CN=;O=", "CN=a,1.2=#0500", "CN=a\r\n", "CN\n=a", "cN=a", "Cn=a", "CN =a,O =b", "super", "anyone", "*", "x509:CN=a"};

    static byte[] bytes(int tag, String text) {
        Charset charset = switch (tag) {
            case 20 -> StandardCharsets.ISO_8859_1;
            case 30 -> StandardCharsets.UTF_16BE;
            case 28 -> Charset.forName("UTF-32BE");
            default -> StandardCharsets.UTF_8;
        };
        return text.getBytes(charset);
    }

    static byte[] tlv(int tag, byte[]... contents) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        for (byte[] part : contents) {
            content.writeBytes(part);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        int length = content.size();
        if (length >= 256) {
            out.write(0x82);
            out.write(length >> 8);
        } else if (length >= 128) {
            out.write(0x81);
        }
        out.write(length);
        out.writeBytes(content.toByteArray());
        return out.toByteArray();
    }

    static byte[] attribute(String type, int tag, byte[] value) throws Exception {
        return tlv(0x30, oid(type), tlv(tag, value));
    }

    static byte[] rdn(byte[]... attributes) {
        return tlv(0x31, attributes);
    }

    static byte[] name(byte[]... rdns) {
        return tlv(0x30, rdns);
    }

    /** The name with this type alone, as the JDK encodes it, cut down to the type. */
    static byte[] oid(String type) {
        byte[] encoded = new X500Principal(type + "=a").getEncoded();
        int length = encoded[7];
        return java.util.Arrays.copyOfRange(encoded, 6, 8 + length);
    }

    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder();
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            if (b > ' ' && b < 127 && b != '%') {
                out.append((char) b);
            } else {
                out.append(String.format("%%%02x", b));
            }
        }
        return out.toString();
    }
}
