import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Random;
import org.apache.zookeeper.server.auth.KerberosName;

/**
 * Which short names ZooKeeper's rules for Kerberos names make.
 *
 * Prints lines of three fields divided by a space, in which %xx stands for one byte of UTF-8: the rules, a name, and the answer:
 *   =SHORT  the short name
 *   -       no rule fits, or the name that the fitting rule makes is not a valid short name
 *   ~       the rule fails while it is applied
 *   !       the rules are refused; the name is empty then
 */
public class Short {
    static final Random RANDOM = new Random(23);
    static final String[] NAMES = {
        "bob", "bob@EXAMPLE.COM", "bob@OTHER.ORG", "zk/host1.example.com@EXAMPLE.COM", "zk/host2@OTHER.ORG", "ab-c_9/a.b@EXAMPLE.COM", "a/b/c",
        "aab@A", "baab/aab@B", "@EXAMPLE.COM", "/@", "b%$\\b@EXAMPLE.COM", "j\u00fcrgen@EXAMPLE.COM", "a b/c d@e f", "Bob/ADMIN@example.com", "",
        "aaaa/b@EXAMPLE.COM", "a1b22c333@EXAMPLE.COM"};
    static final String[] RULES = {
        "", " ", "DEFAULT", " DEFAULT ", "DEFAULTDEFAULT", "default", "DEFAULT,DEFAULT", "DEFAULT\nRULE:[1:$1]", "RULE:[1:$1]", "RULE:[1:$1@$0]",
        "RULE:[2:$1]", "RULE:[2:$1;$2]", "RULE:[2:$2$1$0]", "RULE:[1:$1](b.*)", "RULE:[1:$1](b)", "RULE:[1:$1@$0](.*@EXAMPLE.COM)s/@.*//",
        "RULE:[1:$1@$0](.*@EXAMPLE\\.COM)s/@.*//DEFAULT", "RULE:[2:$1@$0](zk@EXAMPLE.COM)s/.*/super/ DEFAULT", "RULE:[1:$1]s/a/x/g",
        "RULE:[1:$1]s/a/x/", "RULE:[1:$1]s/a*/-/g", "RULE:[1:$1]s/.*/x/g", "RULE:[1:$1]s/.*/x/", "RULE:[1:$1]s/(a)(b)/$2$1/g", "RULE:[1:$1]s/(a)/$11/",
        "RULE:[1:$1]s/a/$0$0/", "RULE:[1:$1]s/a/\\$1/", "RULE:[1:$1]s/a/\\\\/", "RULE:[1:$1]s/a/$1/", "RULE:[1:$1]s/a/$/", "RULE:[1:$1]s/a/b\\/",
        "RULE:[1:$1]s/a/${x}/", "RULE:[1:$1]s//-/g", "RULE:[1:$1]s//-/", "RULE:[1:$1]s/a//g", "RULE:[1:$1]s/a/b/L", "RULE:[1:$1]s/a/b/gg",
        "RULE:[1:$1]s/a/b", "RULE:[1:$1]s/a", "RULE:[1:$1](a", "RULE:[1:$1]()", "RULE:[1:$1](())", "RULE:[1:]", "RULE:[1:fixed]", "RULE:[1:a/b]",
        "RULE:[1:$2]", "RULE:[1:$3]", "RULE:[1:$]", "RULE:[1:$$1]", "RULE:[1:$x]", "RULE:[1:$01]", "RULE:[1:$99999999999]", "RULE:[0:$0]",
        "RULE:[3:$3]", "RULE:[3:$4]", "RULE:[:$1]", "RULE:[x:$1]", "RULE:[-1:$1]", "RULE:[99999999999:$1]", "RULE:[01:$1]", "RULE:1:$1", "RULE:[1:$1",
        "RULE:[1 :$1]", "RULE[1:$1]", "x", "RULE:[1:$1](*)", "RULE:[1:$1]([a)", "RULE:[1:$1](a{2,})", "RULE:[1:$1](a{2}b)", "RULE:[1:$1](a{)",
        "RULE:[1:$1](a++b)", "RULE:[1:$1](a**)", "RULE:[1:$1]([^b]*)", "RULE:[1:$1](.*?b)", "RULE:[1:$1]s/(?i)B/x/", "RULE:[1:$1]s/(?=b)/x/",
        "RULE:[1:$1]s/(a|b)*/<$1>/g", "RULE:[1:$1]s/(a*)*/<$1>/", "RULE:[1:$1]s/(?<n>a)/${n}/", "RULE:[1:$1]s/\\bb/x/", "RULE:[1:$1]s/(a)\\1/x/",
        "RULE:[1:$1](\\w+)", "RULE:[1:$1](\\W+)", "RULE:[1:$1]([\\w]+)", "RULE:[1:$1]([^\\d]+)", "RULE:[1:$1]s/\\d+/#/g", "RULE:[1:$1]s/[0-9]+?/#/g",
        "RULE:[1:$1]([a-z&&[^b]]+)", "RULE:[1:$1]([a[b]]+)", "RULE:[1:$1](]+)", "RULE:[1:$1]([]b]+)", "RULE:[1:$1]([-b]ob)", "RULE:[1:$1]([b-]ob)",
        "RULE:[1:$1]([z-a])", "RULE:[1:$1](\\Qbob\\E)", "RULE:[1:$1](\\x62ob)", "RULE:[1:$1](\\p{Alpha}+)", "RULE:[1:$1](\\<bob)", "RULE:[1:$1](b\\-b)",
        "RULE:[1:$1](bo~b)", "RULE:[1:$1]([a~~b]ob)", "RULE:[1:$1]([a--b]ob)", "RULE:[1:$1](bob|)", "RULE:[1:$1](|bob)", "RULE:[1:$1](^bob$)",
        "RULE:[1:$1](b$ob)", "RULE:[1:$1]s/^/x/g", "RULE:[1:$1]s/$/x/g", "RULE:[1:$1]s/^b/x/g", "RULE:[1:$1]s/b$/x/g", "RULE:[1:$1](\\Abob\\z)",
        "RULE:[1:$1](bob\\Z)", "RULE:[1:$1]s/\\s/_/g", "RULE:[1:$1]s/[^a-z]/_/g", "RULE:[1:$1](j\u00fc.*)", "RULE:[1:$1](j[^x]rgen)", "RULE:[1:$1](\\d)",
        "RULE:[1:$1]s/b#/x/", "RULE:[1:$1]s/ /x/", "RULE:[2:$1 $2](.* .*)s/ /-/", "RULE:[1:$1](bob)RULE:[1:x]", "RULE:[1:$1@$0](bob@.*)RULE:[1:x]",
        "RULE:[1:$1]DEFAULT garbage", "DEFAULT RULE:[2:$2](host.*)s/host([0-9]).*/node$1/\n\tRULE:[1:nobody]", "RULE:[2:$1$2](\\S+)s/(.)(.)/$2$1/g",
        "RULE:[1:$1](a{1,2}b|b.*)", "RULE:[1:$1]s/(?:a|b)+/x/", "RULE:[1:$1]s/(a|ab)(c|bcd)?/<$1,$2>/", "RULE:[1:$1]s/a??b/x/", "RULE:[1:$1]s/}/x/",
        "RULE:[1:$1]s/{/x/", "RULE:[1:$1](.)s/x/y/", "\u00a0DEFAULT", "\u000bDEFAULT", "RULE:[1:$1]s/\\//x/", "RULE:[1:$1](\\))"};
    static final String[] ATOMS = {
        "a", "b", "c", "o", "\\.", ".", "[ab]", "[^a]", "[a-c]", "\\d", "\\w", "\\W", "(a)", "(b|a)", "(?:ab)", "(ab|a)", "(a|b|ob)", "host", "@", "-", "_",
        "\\$", "%", "[^@]", "[0-9a-f]", "\\S", "[\\w.]", "(a(b)?)", "[.]", "e", "(x*a)"};
    static final String[] REPEATS = {"", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,2}", "{1,2}?"};
    static final String[] TOS = {"", "x", "$1", "$0", "<$0>", "$1$1", "-", "\\$", "a$1b", "$2"};
    static final String[] FORMATS = {"$1", "$1@$0", "$1;$2", "$2", "$0", "x$1", "$1$2$0", "$2.$1"};

    static String pick(String[] of) {
        return of[RANDOM.nextInt(of.length)];
    }

    static String pattern(boolean inParentheses) {
        StringBuilder made = new StringBuilder();
        for (int i = RANDOM.nextInt(4); i >= 0; i--) {
            String atom = pick(ATOMS);
            if (!inParentheses || !atom.contains(")")) {
                made.append(atom).append(pick(REPEATS));
            }
        }
        String end = RANDOM.nextInt(3) == 0 ? "$" : "";
        return (RANDOM.nextInt(4) == 0 ? "^" : "") + made + (inParentheses && RANDOM.nextInt(2) == 0 ? ".*" : "") + end;
    }

    static String rule() {
        int components = 1 + RANDOM.nextInt(2);
        String format = pick(FORMATS);
        if (components == 1) {
            format = format.replace("$2", "$1");
        }
        String made = "RULE:[" + components + ":" + format + "]";
        if (RANDOM.nextInt(3) == 0) {
            made += "(" + pattern(true) + ")";
        }
        if (RANDOM.nextInt(4) > 0) {
            String from = pattern(false);
            long groups = from.chars().filter(c -> c == '(').count() - (from.contains("(?:") ? from.split("\\(\\?:", -1).length - 1 : 0);
            String to = pick(TOS);
            boolean fits = groups >= (to.contains("$2") ? 2 : to.contains("$1") ? 1 : 0);
            made += "s/" + from + "/" + (fits ? to : "y") + "/" + (RANDOM.nextBoolean() ? "g" : "");
        }
        return made;
    }

    static String coded(String text) {
        StringBuilder made = new StringBuilder();
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            made.append(b > 0x20 && b < 0x7f && b != '%' ? String.valueOf((char) b) : String.format("%%%02x", b & 0xff));
        }
        return made.toString();
    }

    static String answer(String name) {
        try {
            return "=" + coded(new KerberosName(name).getShortName());
        } catch (IOException e) {
            return "-";
        } catch (RuntimeException e) {
            return "~";
        }
    }

    public static void main(String[] args) throws Exception {
        Path conf = Files.createTempFile("krb5", ".conf");
        Files.writeString(conf, "[libdefaults]\ndefault_realm = EXAMPLE.COM\n");
        System.setProperty("java.security.krb5.conf", conf.toString());
        LinkedHashSet<String> all = new LinkedHashSet<>(java.util.List.of(RULES));
        while (all.size() < 500) {
            all.add(rule() + (RANDOM.nextInt(4) == 0 ? rule() : "") + (RANDOM.nextInt(3) == 0 ? "DEFAULT" : ""));
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);
        int turn = 0;
        for (String rules : all) {
            System.setProperty("zookeeper.security.auth_to_local", rules);
            try {
                KerberosName.setConfiguration();
            } catch (RuntimeException e) {
                out.println(coded(rules) + "  !");
                continue;
            }
            boolean isRandom = turn++ >= RULES.length - 40;
            for (int i = 0; i < NAMES.length; i++) {
                if (!isRandom || RANDOM.nextInt(4) == 0) {
                    out.println(coded(rules) + " " + coded(NAMES[i]) + " " + answer(NAMES[i]));
                }
            }
        }
        Files.delete(conf);
    }
}
