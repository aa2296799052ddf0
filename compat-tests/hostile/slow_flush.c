/* slow_flush FILE COMMAND...: runs a command whose fsync and fdatasync take 200 ms longer while FILE exists.
 *
 * Uses seccomp notifications, which see the system calls themselves: oxkeeper flushes without libc, so LD_PRELOAD can't.
 * Each delayed flush adds a byte to FILE.count.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOW_US 200000
static const char *flag;
static int listener;

static void *answer(void *id) {
    if (access(flag, F_OK) == 0) {
        char path[4096];
        snprintf(path, sizeof path, "%s.count", flag);
        usleep(SLOW_US);
        int count = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (count >= 0) {
            if (write(count, "x", 1) != 1) perror("count");
            close(count);
        }
    }
    struct seccomp_notif_resp reply = {.id = *(__u64 *)id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
    free(id);
    return NULL;
}

static void supervise(void) {
    signal(SIGTERM, SIG_IGN); /* The server flushes while it stops. */
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    while (poll(&ready, 1, -1) >= 0 || errno == EINTR) {
        if (ready.revents & POLLIN) {
            struct seccomp_notif request;
            memset(&request, 0, sizeof request);
            if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) continue;
            __u64 *id = malloc(sizeof *id);
            pthread_t thread;
            *id = request.id;
            if (pthread_create(&thread, NULL, answer, id) == 0) pthread_detach(thread); else answer(id);
        } else if (ready.revents & (POLLHUP | POLLERR)) {
            _exit(0); /* The server has ended. */
        }
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int pair[2];
    if (argc < 3 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 2;
    flag = argv[1];
    char data = 0, space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&data, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (fork() == 0) { /* The supervisor; it closes the other end, so that recvmsg ends if no listener is sent. */
        close(pair[0]);
        if (recvmsg(pair[1], &message, 0) != 1 || !CMSG_FIRSTHDR(&message)) _exit(2);
        memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof listener);
        supervise();
    }
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fsync, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fdatasync, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 2;
    listener = (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0) { perror("seccomp"); return 2; }
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &listener, sizeof listener);
    if (sendmsg(pair[0], &message, 0) != 1) return 2;
    close(listener);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 2;
}
