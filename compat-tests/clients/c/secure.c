/* The C client over TLS, with SASL, or with both: creates a znode that its own identity may read, reads it, and prints "ERROR DATA ID...".

   Arguments: host:port, a command ("create" or "get") and its path, "ca,certificate,key,password of the key" or "-", then for SASL the mechanism,
   the server's name, user, and a file with the password or "-". The list of a znode is that of `auth` with SASL, else open.

   The client has no function that takes both, so the one that all its functions call is called here. */
#include <openssl/ssl.h>
#include <signal.h>

#if OPENSSL_VERSION_NUMBER >= 0x30000000L
#define FIPS_mode() 0 /* Which versions of the client before 3.9 only log, and this OpenSSL lacks. */
#endif
#include "zookeeper.c" /* The file of ZooKeeper's source. */

static volatile int connected;

static void watch(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)path, (void)context;
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) connected = 1;
}

int main(int count, char **words) {
    if (count != 5 && count != 9) return 2;
    char *path = words[3], *certificates = words[4], data[8];
    int is_create = !strcmp(words[2], "create"), has_sasl = count == 9, length = sizeof data;
    signal(SIGPIPE, SIG_IGN); /* The client writes to connections that the server has refused. */
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zcert_t shown = {strdup(certificates)}; /* The handle frees it. */
    shown.ca = strtok(shown.certstr, ","), shown.cert = strtok(NULL, ","), shown.key = strtok(NULL, ","), shown.passwd = strtok(NULL, ",");
    zoo_sasl_params_t sasl = {0};
    if (has_sasl) {
        if (sasl_client_init(NULL) != SASL_OK) return 2;
        sasl.service = "zookeeper", sasl.mechlist = words[5], sasl.host = words[6];
        sasl.callbacks = zoo_sasl_make_basic_callbacks(words[7], NULL, strcmp(words[8], "-") ? words[8] : NULL);
    }
    zhandle_t *handle = zookeeper_init_internal(words[1], watch, 8000, NULL, NULL, 0, NULL, shown.cert ? &shown : NULL, has_sasl ? &sasl : NULL);
    int refused = 0; /* No event shows it. */
    for (int waited = 0; handle && !connected && !refused && waited < 100; waited++) {
        usleep(100000);
        refused = zoo_state(handle) == ZOO_AUTH_FAILED_STATE;
    }
    if (!connected) {
        puts(refused ? "authentication failed" : "no connection");
        return 1;
    }
    const struct ACL_vector *list = has_sasl ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    int error = is_create ? zoo_create(handle, path, "x", 1, list, 0, NULL, 0) : 0;
    if (!error) error = zoo_get(handle, path, 0, data, &length, NULL);
    printf("%d %.*s", error, error ? 0 : length, data);
    struct ACL_vector stored = {0, NULL};
    struct Stat stat;
    if (!error && !zoo_get_acl(handle, path, &stored, &stat))
        for (int at = 0; at < stored.count; at++) printf(" %s:%s", stored.data[at].id.scheme, stored.data[at].id.id);
    puts("");
    zookeeper_close(handle);
    return error != 0;
}
