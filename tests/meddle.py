"""A library that is loaded into the processes of a node, between them and the kernel: clocks that stand still or are wrong, and syncs
that are slow or fail.

All processes of a node share a file of orders. These can be changed: `CLOCK_MONOTONIC` with `CLOCK_MONOTONIC_RAW`, and `CLOCK_BOOTTIME` (held back),
`CLOCK_REALTIME` (any offset), fsync and fdatasync. The rates of clocks cannot.

Programs read clocks in the kernel's own library, the vDSO. `rustix` calls it past libc, so a function of libc's name would not be
asked. The first bytes of the vDSO's function are therefore replaced by a jump to ours: whoever reads a clock gets there.
"""

import mmap
import os
import struct

import preload

LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MONOTONIC_HELD_NS, BOOT_HELD_NS, WALL_NS, SYNC_US, SYNCS_FAIL, BOOT_IS_READ, ORDERS };
static _Atomic(long) *orders;

static int read_clock(clockid_t clock, struct timespec *now) {
    long more = 0;
    if (syscall(SYS_clock_gettime, clock, now)) return -1;
    if (!orders) return 0;
    if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW) more = -atomic_load(&orders[MONOTONIC_HELD_NS]);
    if (clock == CLOCK_REALTIME) more = atomic_load(&orders[WALL_NS]);
    if (clock == CLOCK_BOOTTIME) more = -atomic_load(&orders[BOOT_HELD_NS]);
    long ns = now->tv_sec * 1000000000L + now->tv_nsec + more;
    now->tv_sec = ns / 1000000000L;
    now->tv_nsec = ns % 1000000000L;
    return 0;
}

/* What the vDSO's function does: it gives a negative error number. */
static int instead(clockid_t clock, struct timespec *now) {
    /* No counter: all threads would write to it all the time. */
    if (orders && clock == CLOCK_BOOTTIME && !atomic_load(&orders[BOOT_IS_READ])) atomic_store(&orders[BOOT_IS_READ], 1);
    return read_clock(clock, now) ? -errno : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) { return read_clock(clock, now); }

/* Who reads clocks past libc comes to us, too. Where that cannot be done, no read is noted, and the test says so. */
static void take_over(void) {
#if defined(__x86_64__)
    /* movabs rax, address; jmp rax */
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    const char *name = "__vdso_clock_gettime";
    const int at = 2;
#elif defined(__aarch64__)
    /* ldr x16, 8 bytes from here; br x16; address */
    unsigned char jump[16] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};
    const char *name = "__kernel_clock_gettime";
    const int at = 8;
#else
#error "the jump is known for x86-64 and aarch64 only"
#endif
    void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    char *function = vdso ? dlsym(vdso, name) : 0;
    if (!function) return;
    int (*ours)(clockid_t, struct timespec *) = instead;
    memcpy(jump + at, &ours, sizeof ours);
    /* The kernel does not split the mapping. */
    unsigned long first, end = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &first, &end) == 2) break;
    if (maps) fclose(maps);
    if (!end || mprotect((void *)first, end - first, PROT_READ | PROT_WRITE | PROT_EXEC)) return;
    memcpy(function, jump, sizeof jump);
    mprotect((void *)first, end - first, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(function, function + sizeof jump);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LATS_ORDERS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(0, ORDERS * sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) return;
    orders = at;
    take_over();
}

static int meddle(void) {
    if (!orders) return 0;
    long wait_us = atomic_load(&orders[SYNC_US]), left = atomic_load(&orders[SYNCS_FAIL]);
    if (wait_us > 0) usleep(wait_us);
    /* As Linux does it: an error is told once. */
    while (left > 0)
        if (atomic_compare_exchange_weak(&orders[SYNCS_FAIL], &left, left - 1)) { errno = EIO; return -1; }
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
# As in the library.
MONOTONIC_HELD_NS, BOOT_HELD_NS, WALL_NS, SYNC_US, SYNCS_FAIL, BOOT_IS_READ = range(6)
BYTES = 8 * 6


def build(directory):
    """Builds it; gives its path."""
    return preload.build("meddle", LIBRARY, directory)


class Orders:
    """What the processes of a node are to do."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.write(bytes(BYTES))

    def set(self, which, value):
        self.change(which, lambda _: value)

    def change(self, which, how):
        with open(self.path, "r+b") as file, mmap.mmap(file.fileno(), BYTES) as shared:
            at = slice(8 * which, 8 * which + 8)
            shared[at] = struct.pack("<q", how(struct.unpack("<q", shared[at])[0]))

    def get(self, which):
        with open(self.path, "rb") as file:
            return struct.unpack(f"<{BYTES // 8}q", file.read(BYTES))[which]

    def environment(self, library):
        """For a process of the node."""
        return {**os.environ, "LD_PRELOAD": library, "LATS_ORDERS": self.path}
