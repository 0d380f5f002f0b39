// Memory of a kernel's tensors while it runs, around which is none, and what is said where that is found out.
#pragma once
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

// A tensor's memory, the number of the first argument that lies in it, and where it lies while the kernel runs.
extern "C" struct Storage {
    char* data;
    uint64_t bytes;
    int argument;
    char* placed;
};

namespace {
constexpr size_t GUARD = 1 << 20, MARGIN = 64;
constexpr unsigned char POISON = 0xff;  // NaN in every floating-point type, and -1
const size_t page = (size_t)sysconf(_SC_PAGESIZE);

char message[1024];
char* dynamic_shared;
Storage* storages;
int storage_count;

void say(const char* format, ...) {
    va_list values;
    va_start(values, format);
    size_t used = strlen(message);
    vsnprintf(message + used, sizeof(message) - used, format, values);
    va_end(values);
}

// Around a tensor: NaN in 32 bits and in 64, but others than around another tensor, lest a copy of them be overlooked.
unsigned char around(const char* address, int tensor) {
    const unsigned char bytes[] = {(unsigned char)tensor, 0xa5, 0xff, 0xff};
    return bytes[(uintptr_t)address % 4];
}

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Memory that ends, but for its alignment, where no memory is; around it lies what must not be changed.
char* place(size_t bytes, int tensor) {
    size_t room = rounded(rounded(bytes, 16) + MARGIN, page);
    char* map = (char*)mmap(nullptr, room + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED || mprotect(map + GUARD, room, PROT_READ | PROT_WRITE)) return nullptr;
    char* placed = map + GUARD + room - rounded(bytes, 16);
    memset(placed, POISON, bytes);
    for (char* at = placed - MARGIN; at < placed; at++) *at = (char)around(at, tensor);
    for (char* at = placed + bytes; at < placed + rounded(bytes, 16); at++) *at = (char)around(at, tensor);
    return placed;
}

void remove(char* placed, size_t bytes) {
    size_t room = rounded(rounded(bytes, 16) + MARGIN, page);
    munmap(placed + rounded(bytes, 16) - room - GUARD, room + 2 * GUARD);
}

bool untouched(const char* from, const char* to, int tensor) {
    while (from < to && (unsigned char)*from == around(from, tensor)) from++;
    return from == to;
}

void say_near(const char* address) {
    for (int index = 0; index < storage_count; index++) {
        const Storage& it = storages[index];
        const char* end = it.placed + it.bytes;
        if (address < it.placed - GUARD || address >= end + GUARD) continue;
        bool before = address < it.placed;
        say(", %ld bytes %s of argument %d", (long)(before ? it.placed - address : address - end),
            before ? "before the tensor" : "behind the tensor's end", it.argument);
        return;
    }
    bool is_shared = dynamic_shared && address >= dynamic_shared - GUARD && address < dynamic_shared + 2 * GUARD;
    if (is_shared) say(", near its shared memory");
}

void take_in() {
    for (int i = 0; i < storage_count; i++) {
        storages[i].placed = place(storages[i].bytes, i);
        memcpy(storages[i].placed, storages[i].data, storages[i].bytes);
    }
}

void give_back() {
    for (int i = 0; i < storage_count; i++) {
        Storage& it = storages[i];
        const char* end = it.placed + it.bytes;
        bool before = !untouched(it.placed - MARGIN, it.placed, i);
        bool behind = !untouched(end, it.placed + rounded(it.bytes, 16), i);
        const char* where = before ? "before" : "behind the end of";
        if (!message[0] && (before || behind)) say("writes %s the tensor of argument %d", where, it.argument);
        memcpy(it.data, it.placed, it.bytes);
        remove(it.placed, it.bytes);
    }
}
}  // namespace
