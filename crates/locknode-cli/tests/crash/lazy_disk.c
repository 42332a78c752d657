/* A disk that keeps what was synced and nothing else, for one process; preloaded by the crash test.
 *
 * A write stays in memory until its file is synced, so that a SIGKILL, after which the kernel still has what was
 * written, loses as much as a power cut may. Each sync first sleeps for LAZY_DISK_SYNC_US microseconds. Reads of the
 * process itself do not see what is held back: a node reads its files before it writes to them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct held {
    struct held *next;
    int fd;
    off_t offset;
    size_t len;
    char bytes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct held *first;
static struct held **last = &first;

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
    struct held *held = malloc(sizeof *held + len);
    if (!held) {
        errno = ENOMEM;
        return -1;
    }
    *held = (struct held){ .fd = fd, .offset = offset, .len = len };
    memcpy(held->bytes, bytes, len);
    pthread_mutex_lock(&lock);
    *last = held;
    last = &held->next;
    pthread_mutex_unlock(&lock);
    return (ssize_t)len;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    return pwrite64(fd, bytes, len, offset);
}

/* Writes what is held back of a file, in order; -1 when the system refuses. */
static int let_go(int fd)
{
    int result = 0;
    pthread_mutex_lock(&lock);
    for (struct held **at = &first; *at;) {
        struct held *held = *at;
        if (held->fd != fd) {
            at = &held->next;
            continue;
        }
        for (size_t done = 0; done < held->len && !result;) {
            ssize_t wrote = syscall(SYS_pwrite64, fd, held->bytes + done, held->len - done,
                                    held->offset + (off_t)done);
            if (wrote >= 0)
                done += (size_t)wrote;
            else if (errno != EINTR)
                result = -1;
        }
        *at = held->next;
        free(held);
    }
    for (last = &first; *last; last = &(*last)->next)
        ;
    pthread_mutex_unlock(&lock);
    return result;
}

static int sync_slowly(int fd, long call)
{
    const char *us = getenv("LAZY_DISK_SYNC_US");
    if (us)
        usleep((useconds_t)strtoul(us, NULL, 10));
    return let_go(fd) ? -1 : (int)syscall(call, fd);
}

int fdatasync(int fd)
{
    return sync_slowly(fd, SYS_fdatasync);
}

int fsync(int fd)
{
    return sync_slowly(fd, SYS_fsync);
}

/* A file that is closed keeps what was written to it: the kernel has it. */
int close(int fd)
{
    let_go(fd);
    return (int)syscall(SYS_close, fd);
}
