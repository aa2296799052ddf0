import java.io.*;
import java.lang.reflect.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

/**
 * Runs main classes of ZooKeeper's toolkits, one after the other in one JVM, and keeps what each printed.
 *
 * java -Djava.security.manager=allow -Dfile.encoding=UTF-8 -cp 'JARS/*' Tools.java CASES OUT
 *
 * A case is a line: name, class, standard input (\n escaped), arguments; fields are separated by tabs. For each case OUT gets the files
 * NAME.out, NAME.err and NAME.code. Each case has a class loader of its own, since SnapshotFormatter counts in a static field.
 */
public class Tools {
    static class Exit extends SecurityException {
        final int code;

        Exit(int code) {
            this.code = code;
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out, err = System.err;
        InputStream in = System.in;
        System.setSecurityManager(new SecurityManager() {
            public void checkPermission(java.security.Permission p) {}

            public void checkExit(int code) {
                throw new Exit(code);
            }
        });
        List<URL> urls = new ArrayList<>();
        for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
            urls.add(new File(jar).toURI().toURL());
        }
        for (String line : Files.readAllLines(Path.of(args[0]), StandardCharsets.UTF_8)) {
            String[] fields = line.split("\t", -1);
            ByteArrayOutputStream o = new ByteArrayOutputStream(), e = new ByteArrayOutputStream();
            System.setOut(new PrintStream(o, true, "UTF-8"));
            System.setErr(new PrintStream(e, true, "UTF-8"));
            System.setIn(new ByteArrayInputStream(fields[2].replace("\\n", "\n").getBytes("UTF-8")));
            int code = run(new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader()), fields);
            System.out.flush();
            System.err.flush();
            Files.write(Path.of(args[1], fields[0] + ".out"), o.toByteArray());
            Files.write(Path.of(args[1], fields[0] + ".err"), e.toByteArray());
            Files.writeString(Path.of(args[1], fields[0] + ".code"), code + "\n");
        }
        System.setOut(out);
        System.setErr(err);
        System.setIn(in);
        System.setSecurityManager(null);
        System.exit(0);
    }

    static int run(ClassLoader loader, String[] fields) throws Exception {
        Method main = loader.loadClass(fields[1]).getMethod("main", String[].class);
        try {
            main.invoke(null, (Object) Arrays.copyOfRange(fields, 3, fields.length));
            return 0;
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof Exit exit) {
                return exit.code;
            }
            System.err.println("Exception in thread \"main\" " + failed.getCause());
            return 1;
        }
    }
}
