import java.io.FileInputStream;
import java.security.KeyStore;
import java.util.Collections;

/** Prints the aliases of a JKS in the order in which Java goes through them. */
public class Order {
    public static void main(String[] args) throws Exception {
        KeyStore store = KeyStore.getInstance("JKS");
        try (FileInputStream in = new FileInputStream(args[0])) {
            store.load(in, args[1].toCharArray());
        }
        for (String alias : Collections.list(store.aliases())) {
            System.out.println(alias);
        }
    }
}
