/* libzookeeper_mt, driven by commands on stdin: `work sync` or `work async` says through which half of its API.
 * `class Worker` in workers.py describes the commands. */

#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

static zhandle_t *client;
static pthread_mutex_t talk = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    pthread_mutex_lock(&talk);
    vprintf(format, rest);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&talk);
    va_end(rest);
}

/* The watcher of the session and of every read. */
static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)context;
    if (type != ZOO_SESSION_EVENT) {
        say("event %d %s", type, path); /* ZOO_CREATED_EVENT and so on are the numbers of the protocol. */
    } else {
        say("state %s", state == ZOO_CONNECTED_STATE ? "SyncConnected" : "Disconnected");
    }
}

/* The result of a request; `done` is posted by the completions of the asynchronous API. */
struct outcome {
    sem_t done;
    int code;
    struct Stat stat;
    char text[4096];
};

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void join(struct outcome *outcome, const struct String_vector *names) {
    char *sorted[256];
    int count = names->count < 256 ? names->count : 256;
    memcpy(sorted, names->data, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_name);
    for (int i = 0; i < count; i++) {
        strcat(strcat(outcome->text, i ? "," : ""), sorted[i]);
    }
}

static void on_void(int code, const void *data) {
    struct outcome *outcome = (struct outcome *)data;
    outcome->code = code;
    sem_post(&outcome->done);
}

static void on_stat(int code, const struct Stat *stat, const void *data) {
    if (stat != NULL) ((struct outcome *)data)->stat = *stat;
    on_void(code, data);
}

static void on_string(int code, const char *value, const void *data) {
    if (value != NULL) strcpy(((struct outcome *)data)->text, value);
    on_void(code, data);
}

static void on_data(int code, const char *value, int length, const struct Stat *stat, const void *data) {
    if (length > 0) memcpy(((struct outcome *)data)->text, value, (size_t)length); /* The rest is zero. */
    on_stat(code, stat, data);
}

static void on_names(int code, const struct String_vector *names, const void *data) {
    if (names != NULL) join((struct outcome *)data, names);
    on_void(code, data);
}

/* Waits for the completion, unless the request could not even be sent. */
static void await(struct outcome *outcome, int sent) {
    if (sent == ZOK) {
        sem_wait(&outcome->done);
    } else {
        outcome->code = sent;
    }
}

static void ask_async(char **words, struct outcome *out) {
    const char *kind = words[0], *path = words[1];
    if (!strcmp(kind, "create")) {
        path = words[2];
        await(out, zoo_acreate(client, path, words[3], (int)strlen(words[3]), &ZOO_OPEN_ACL_UNSAFE, atoi(words[1]),
                               on_string, out));
    } else if (!strcmp(kind, "get")) {
        await(out, zoo_awget(client, path, on_event, NULL, on_data, out));
    } else if (!strcmp(kind, "exists")) {
        await(out, zoo_awexists(client, path, on_event, NULL, on_stat, out));
    } else if (!strcmp(kind, "set")) {
        await(out, zoo_aset(client, path, words[2], (int)strlen(words[2]), atoi(words[3]), on_stat, out));
    } else if (!strcmp(kind, "children")) {
        await(out, zoo_awget_children(client, path, on_event, NULL, on_names, out));
    } else {
        await(out, zoo_adelete(client, path, atoi(words[2]), on_void, out));
    }
}

static void ask_sync(char **words, struct outcome *out) {
    const char *kind = words[0], *path = words[1];
    if (!strcmp(kind, "create")) {
        out->code = zoo_create(client, words[2], words[3], (int)strlen(words[3]), &ZOO_OPEN_ACL_UNSAFE,
                               atoi(words[1]), out->text, sizeof out->text);
    } else if (!strcmp(kind, "get")) {
        int length = sizeof out->text - 1;
        out->code = zoo_wget(client, path, on_event, NULL, out->text, &length, &out->stat);
    } else if (!strcmp(kind, "exists")) {
        out->code = zoo_wexists(client, path, on_event, NULL, &out->stat);
    } else if (!strcmp(kind, "set")) {
        out->code = zoo_set2(client, path, words[2], (int)strlen(words[2]), atoi(words[3]), &out->stat);
    } else if (!strcmp(kind, "children")) {
        struct String_vector names = {0};
        out->code = zoo_wget_children(client, path, on_event, NULL, &names);
        join(out, &names);
        deallocate_String_vector(&names);
    } else {
        out->code = zoo_delete(client, path, atoi(words[2]));
    }
}

/* One multi: checks the version, sets the data, creates a child and deletes it. */
static void multi(int sync, const char *path, int version, struct outcome *out) {
    char child[256], made[256];
    struct Stat stat;
    zoo_op_t ops[4];
    zoo_op_result_t results[4];
    snprintf(child, sizeof child, "%s/m", path);
    zoo_check_op_init(&ops[0], path, version);
    zoo_set_op_init(&ops[1], path, "multi", 5, -1, &stat);
    zoo_create_op_init(&ops[2], child, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, made, sizeof made);
    zoo_delete_op_init(&ops[3], child, -1);
    if (sync) {
        out->code = zoo_multi(client, 4, ops, results);
    } else {
        await(out, zoo_amulti(client, 4, ops, results, on_void, out));
    }
}

/* Runs one command; returns whether more may follow. */
static int answer(int sync, char **words, struct outcome *out) {
    const char *kind = words[0];
    if (!strcmp(kind, "connect")) {
        client = zookeeper_init(words[1], on_event, atoi(words[2]), NULL, NULL, 0);
    } else if (!strcmp(kind, "session")) {
        sprintf(out->text, "%llx", (unsigned long long)zoo_client_id(client)->client_id);
    } else if (!strcmp(kind, "multi")) {
        multi(sync, words[1], atoi(words[2]), out);
    } else if (!strcmp(kind, "sync")) {
        await(out, zoo_async(client, words[1], on_string, out));
    } else if (!strcmp(kind, "close")) {
        out->code = zookeeper_close(client);
        return 0;
    } else {
        (sync ? ask_sync : ask_async)(words, out);
        if (!strcmp(kind, "get")) {
            sprintf(out->text + strlen(out->text), " %d %llx", out->stat.version,
                    (unsigned long long)out->stat.ephemeralOwner);
        } else if (!strcmp(kind, "set")) {
            sprintf(out->text, "%d", out->stat.version);
        }
    }
    return 1;
}

int main(int count, char **arguments) {
    char line[8192];
    int more = 1, sync = count > 1 && !strcmp(arguments[1], "sync");
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    while (more && fgets(line, sizeof line, stdin) != NULL) {
        char *words[5] = {0}, *rest = line;
        struct outcome out = {0};
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < 4 && (words[i] = strsep(&rest, " ")) != NULL; i++) {
        }
        sem_init(&out.done, 0, 0);
        more = answer(sync, words, &out);
        if (out.code == ZOK) {
            say("ok %s", out.text);
        } else {
            say("error %d", out.code);
        }
    }
    return 0;
}
