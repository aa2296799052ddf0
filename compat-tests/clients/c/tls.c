/* The C client over TLS: creates a znode and reads it. Arguments: host:port, and "ca,certificate,key,password of the key". */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zookeeper.h>

static volatile int connected;

static void watch(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)path, (void)context;
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) connected = 1;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    signal(SIGPIPE, SIG_IGN); /* The client writes to connections that the server has refused. */
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *handle = zookeeper_init_ssl(words[1], words[2], watch, 8000, NULL, NULL, 0);
    for (int waited = 0; handle && !connected && waited < 100; waited++) usleep(100000);
    if (!connected) return 1;
    char data[8];
    int length = sizeof data;
    int error = zoo_create(handle, "/c", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    if (!error) error = zoo_get(handle, "/c", 0, data, &length, NULL);
    printf("%d %.*s\n", error, error ? 0 : length, data);
    zookeeper_close(handle);
    return error != 0;
}
