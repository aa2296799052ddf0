import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import javax.security.auth.callback.*;
import javax.security.sasl.*;

/**
 * Prints DIGEST-MD5 exchanges of the JDK with itself: protocol, user, password, challenge, response, last answer; separated by
 * tabs, all but the first in hex. Each account has two: the client asks for its own name, or for none.
 *
 * java Exchanges.java > exchanges.tsv
 */
public class Exchanges {
    static final String[][] SERVICES = {{"zookeeper", "zk-sasl-md5"}, {"zookeeper-quorum", "zk-quorum-sasl-md5"}};
    static final String[][] ACCOUNTS = {
        {"super", "adminsecret"}, {"bob", "bobsecret"}, {"we\"ird\\u", "p,a=s\"s \\"}, {"j\u00fcrgen", "p\u00e4ssw\u00f6rd"},
        {"\u0394\u03b7\u03bc\u03bf\u03c2", "\u03ba\u03c9\u03b4"}, {"mixed\u00e9", "\u65e5\u672c"}, {"sp ace", "\t tab"},
        {"bob@R", "x"}, {"del\u007f\u0001", "ctl\u0002"}, {"\ud834\udd1e", "\ud834\udd1e\ud834\udd1e"}};

    static CallbackHandler handler(boolean isServer, String user, String password) {
        return callbacks -> {
            for (Callback callback : callbacks) {
                if (callback instanceof NameCallback name) {
                    name.setName(isServer ? name.getDefaultName() : user);
                } else if (callback instanceof PasswordCallback asked) {
                    asked.setPassword(password.toCharArray());
                } else if (callback instanceof RealmCallback realm) {
                    realm.setText(realm.getDefaultText());
                } else if (callback instanceof AuthorizeCallback wish) {
                    wish.setAuthorized(wish.getAuthenticationID().equals(wish.getAuthorizationID()));
                }
            }
        };
    }

    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    public static void main(String[] arguments) throws SaslException {
        for (String[] service : SERVICES) {
            for (String[] account : ACCOUNTS) {
                for (String wish : new String[] {account[0], null}) {
                    CallbackHandler servers = handler(true, account[0], account[1]);
                    CallbackHandler clients = handler(false, account[0], account[1]);
                    SaslServer server = Sasl.createSaslServer("DIGEST-MD5", service[0], service[1], null, servers);
                    SaslClient client =
                        Sasl.createSaslClient(new String[] {"DIGEST-MD5"}, wish, service[0], service[1], null, clients);
                    byte[] challenge = server.evaluateResponse(new byte[0]);
                    byte[] response = client.evaluateChallenge(challenge);
                    byte[] last = server.evaluateResponse(response);
                    client.evaluateChallenge(last);
                    String user = hex(account[0].getBytes(StandardCharsets.UTF_8));
                    String password = hex(account[1].getBytes(StandardCharsets.UTF_8));
                    System.out.println(String.join("\t", service[0], user, password, hex(challenge), hex(response), hex(last)));
                }
            }
        }
    }
}
