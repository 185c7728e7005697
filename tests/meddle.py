"""A library that is loaded into the processes of a node, between them and the kernel: clocks that stand still or are wrong, and syncs
that are slow or fail.

All processes of a node share a file of orders. What libc is asked for can be changed: `CLOCK_MONOTONIC` (held back, as in a suspend)
and `CLOCK_REALTIME` (any offset), fsync and fdatasync. The rates of clocks cannot: the simulator draws those.
"""

import mmap
import os
import struct
import subprocess

LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* held back (ns), wall clock ahead (ns), a sync takes so long (us), so many syncs fail */
static _Atomic(long) *orders;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LATS_ORDERS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(0, 32, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) orders = at;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (failed || !orders || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)) return failed;
    long more = clock == CLOCK_MONOTONIC ? -atomic_load(&orders[0]) : atomic_load(&orders[1]);
    long ns = now->tv_sec * 1000000000L + now->tv_nsec + more;
    now->tv_sec = ns / 1000000000L;
    now->tv_nsec = ns % 1000000000L;
    return 0;
}

static int meddle(void) {
    if (!orders) return 0;
    long wait_us = atomic_load(&orders[2]), left = atomic_load(&orders[3]);
    if (wait_us > 0) usleep(wait_us);
    /* As Linux does it: an error is told once. */
    while (left > 0)
        if (atomic_compare_exchange_weak(&orders[3], &left, left - 1)) { errno = EIO; return -1; }
    return 0;
}

#define SYNC(name) \
    int name(int fd) { \
        static int (*real)(int); \
        if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name); \
        return meddle() ? -1 : real(fd); \
    }
SYNC(fsync)
SYNC(fdatasync)
"""
HELD_NS, WALL_NS, SYNC_US, SYNCS_FAIL = range(4)


def build(directory):
    """Builds it; gives its path."""
    source, made = os.path.join(directory, "meddle.c"), os.path.join(directory, "meddle.so")
    with open(source, "w", encoding="ascii") as file:
        file.write(LIBRARY)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


class Orders:
    """What the processes of a node are to do."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.write(bytes(32))

    def set(self, which, value):
        self.change(which, lambda _: value)

    def change(self, which, how):
        with open(self.path, "r+b") as file, mmap.mmap(file.fileno(), 32) as shared:
            at = slice(8 * which, 8 * which + 8)
            shared[at] = struct.pack("<q", how(struct.unpack("<q", shared[at])[0]))

    def get(self, which):
        with open(self.path, "rb") as file:
            return struct.unpack("<4q", file.read(32))[which]

    def environment(self, library):
        """For a process of the node."""
        return {**os.environ, "LD_PRELOAD": library, "LATS_ORDERS": self.path}
